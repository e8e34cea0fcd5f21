package storage

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// translate converts a volume to the names of the destination's cluster. This is done when the object is
// created: source and node affinity are immutable afterwards.
func translate(pv *corev1.PersistentVolume, names plans.Storage) {
	translateNotes(pv, names)
	translateLabels(pv, names.Topology)
	v := &pv.Spec
	v.StorageClassName = names.Class(v.StorageClassName)
	if v.NodeAffinity != nil && v.NodeAffinity.Required != nil {
		for i := range v.NodeAffinity.Required.NodeSelectorTerms {
			for k := range v.NodeAffinity.Required.NodeSelectorTerms[i].MatchExpressions {
				relabel(&v.NodeAffinity.Required.NodeSelectorTerms[i].MatchExpressions[k], names.Topology)
			}
		}
	}
	if v.CSI == nil {
		return
	}
	v.CSI.Driver = names.Driver(v.CSI.Driver)
	for key, value := range v.CSI.VolumeAttributes {
		if to, ok := names.VolumeAttributes[key][value]; ok {
			v.CSI.VolumeAttributes[key] = to
		}
	}
	for _, ref := range secretRefs(v.CSI) {
		*ref = SecretRef(*ref, names)
	}
}

// notedSecrets lists the annotations in which a driver's sidecars record Secrets. Each is a pair with the
// suffixes -name and -namespace. Volumes are deleted and modified with these Secrets.
func notedSecrets() []string {
	return []string{"volume.kubernetes.io/provisioner-deletion-secret", "volume.kubernetes.io/controller-modify-secret"}
}

func notedSecret(pv *corev1.PersistentVolume, note string) (corev1.SecretReference, bool) {
	ref := corev1.SecretReference{Namespace: pv.Annotations[note+"-namespace"], Name: pv.Annotations[note+"-name"]}
	return ref, ref.Namespace != "" && ref.Name != ""
}

// translateNotes translates the names in annotations.
func translateNotes(pv *corev1.PersistentVolume, names plans.Storage) {
	for _, note := range notedSecrets() {
		if ref, ok := notedSecret(pv, note); ok {
			ref = SecretRef(ref, names)
			pv.Annotations[note+"-namespace"], pv.Annotations[note+"-name"] = ref.Namespace, ref.Name
		}
	}
	if by := pv.Annotations[provisionedBy]; by != "" {
		pv.Annotations[provisionedBy] = names.Driver(by)
	}
}

// Secrets lists all Secrets that the driver of a volume receives, now or when the volume is deleted or
// modified.
func Secrets(pv *corev1.PersistentVolume) []corev1.SecretReference {
	var out []corev1.SecretReference
	if pv.Spec.CSI != nil {
		for _, ref := range secretRefs(pv.Spec.CSI) {
			out = append(out, *ref)
		}
	}
	for _, note := range notedSecrets() {
		if ref, ok := notedSecret(pv, note); ok {
			out = append(out, ref)
		}
	}
	return out
}

// ZoneLabels lists the labels of a volume by which, besides the node affinity, the scheduler keeps pods in
// its zone. A value may name several zones.
func ZoneLabels() []string {
	return []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion}
}

// Zones splits the value of a zone label.
func Zones(label string) []string { return strings.Split(label, zoneDelimiter) }

const zoneDelimiter = "__"

func translateLabels(pv *corev1.PersistentVolume, rules []plans.Topology) {
	labels := maps.Clone(pv.Labels)
	for _, key := range ZoneLabels() {
		value, ok := pv.Labels[key]
		if !ok {
			continue
		}
		e := corev1.NodeSelectorRequirement{Key: key, Values: Zones(value)}
		relabel(&e, rules)
		delete(labels, key)
		labels[e.Key] = strings.Join(e.Values, zoneDelimiter)
	}
	pv.Labels = labels
}

// relabel applies the first rule for the key.
func relabel(e *corev1.NodeSelectorRequirement, rules []plans.Topology) {
	for _, r := range rules {
		if r.Key != e.Key {
			continue
		}
		for i, v := range e.Values {
			if to, ok := r.Values[v]; ok {
				e.Values[i] = to
			}
		}
		if r.As != "" {
			e.Key = r.As
		}
		return
	}
}

// secretRefs returns the references of a CSI volume to the Secrets that its driver needs.
func secretRefs(csi *corev1.CSIPersistentVolumeSource) []*corev1.SecretReference {
	var out []*corev1.SecretReference
	for _, ref := range []*corev1.SecretReference{
		csi.ControllerPublishSecretRef, csi.NodeStageSecretRef, csi.NodePublishSecretRef, csi.ControllerExpandSecretRef, csi.NodeExpandSecretRef,
	} {
		if ref != nil {
			out = append(out, ref)
		}
	}
	return out
}

// SecretRef returns the Secret that the destination's driver receives in place of one of the source.
func SecretRef(ref corev1.SecretReference, names plans.Storage) corev1.SecretReference {
	to, ok := names.Secrets[ref.Namespace+"/"+ref.Name]
	if !ok {
		return ref
	}
	namespace, name, _ := strings.Cut(to, "/")
	return corev1.SecretReference{Namespace: namespace, Name: name}
}
