package build

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Dependencies lists the ConfigMaps, Secrets, ServiceAccounts and the governing Service that the set
// names, sorted and without repetition. It omits the objects that the control plane creates in every
// namespace. A dependency is Optional only if every reference to it is.
func Dependencies(set *appsv1.StatefulSet) []plans.Dependency {
	all := references{}
	all.add("Service", set.Spec.ServiceName, nil)
	spec := set.Spec.Template.Spec
	all.add("ServiceAccount", spec.ServiceAccountName, nil)
	for _, s := range spec.ImagePullSecrets {
		all.add("Secret", s.Name, nil)
	}
	for _, v := range spec.Volumes {
		all.volume(v.VolumeSource)
		all.inTree(v.VolumeSource)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		all.container(c)
	}
	delete(all, named{"ServiceAccount", "default"})
	delete(all, named{"ConfigMap", "kube-root-ca.crt"})
	return SortDependencies(slices.Collect(maps.Values(all)))
}

// SortDependencies sorts the list as in a plan: by kind, then by name.
func SortDependencies(list []plans.Dependency) []plans.Dependency {
	slices.SortFunc(list, func(a, b plans.Dependency) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// SharedClaims lists the claims that the pod template mounts by name, sorted and without repetition.
// All ordinals share them, so they do not move with an ordinal.
func SharedClaims(set *appsv1.StatefulSet) []string {
	var out []string
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

type named struct{ kind, name string }

// references are the dependencies found so far.
type references map[named]plans.Dependency

// add records a reference. optional is the field of that name, nil where a reference has none.
func (all references) add(kind, called string, optional *bool) {
	if called == "" {
		return
	}
	need := plans.Dependency{Kind: kind, Name: called, Optional: optional != nil && *optional}
	if have, ok := all[named{kind, called}]; ok {
		need.Optional = need.Optional && have.Optional
	}
	all[named{kind, called}] = need
}

// volume records the references of the volume kinds whose content is an object of the namespace. The
// token, the downward API and the claim template of an ephemeral volume name none.
func (all references) volume(v corev1.VolumeSource) {
	if s := v.ConfigMap; s != nil {
		all.add("ConfigMap", s.Name, s.Optional)
	}
	if s := v.Secret; s != nil {
		all.add("Secret", s.SecretName, s.Optional)
	}
	if v.Projected == nil {
		return
	}
	for _, p := range v.Projected.Sources {
		if s := p.ConfigMap; s != nil {
			all.add("ConfigMap", s.Name, s.Optional)
		}
		if s := p.Secret; s != nil {
			all.add("Secret", s.Name, s.Optional)
		}
	}
}

// inTree records the references of the volume kinds that need a Secret to reach their storage.
func (all references) inTree(v corev1.VolumeSource) {
	secret := func(r *corev1.LocalObjectReference) {
		if r != nil {
			all.add("Secret", r.Name, nil)
		}
	}
	if s := v.CSI; s != nil {
		secret(s.NodePublishSecretRef)
	}
	if s := v.CephFS; s != nil {
		secret(s.SecretRef)
	}
	if s := v.Cinder; s != nil {
		secret(s.SecretRef)
	}
	if s := v.RBD; s != nil {
		secret(s.SecretRef)
	}
	if s := v.ISCSI; s != nil {
		secret(s.SecretRef)
	}
	if s := v.FlexVolume; s != nil {
		secret(s.SecretRef)
	}
	if s := v.ScaleIO; s != nil {
		secret(s.SecretRef)
	}
	if s := v.StorageOS; s != nil {
		secret(s.SecretRef)
	}
	if s := v.AzureFile; s != nil {
		all.add("Secret", s.SecretName, nil)
	}
}

func (all references) container(c corev1.Container) {
	for _, e := range c.EnvFrom {
		if r := e.ConfigMapRef; r != nil {
			all.add("ConfigMap", r.Name, r.Optional)
		}
		if r := e.SecretRef; r != nil {
			all.add("Secret", r.Name, r.Optional)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			all.add("ConfigMap", r.Name, r.Optional)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			all.add("Secret", r.Name, r.Optional)
		}
	}
}
