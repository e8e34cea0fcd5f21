package storage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// bindingNotes lists the annotations by which binder, scheduler and provisioner describe one binding. On
// another claim they would be false.
func bindingNotes() []string {
	return []string{
		"pv.kubernetes.io/bind-completed",
		"pv.kubernetes.io/bound-by-controller",
		"volume.kubernetes.io/selected-node",
		"volume.kubernetes.io/storage-provisioner",
		"volume.beta.kubernetes.io/storage-provisioner",
		"volume.beta.kubernetes.io/storage-class",
		"kubectl.kubernetes.io/last-applied-configuration",
		plans.StampAnnotation,
	}
}

// Manifest returns the fields of a claim that are needed to recreate it, in JSON. It is saved on the volume
// before the claim is deleted.
func Manifest(c *corev1.PersistentVolumeClaim) (string, error) {
	raw, err := json.Marshal(lasting(c))
	return string(raw), err
}

// lasting returns the part of a claim that is still true for another claim in its place.
func lasting(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	keep := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: c.Labels, Annotations: map[string]string{}},
		Spec:       c.Spec,
	}
	for k, v := range c.Annotations {
		if !slices.Contains(bindingNotes(), k) {
			keep.Annotations[k] = v
		}
	}
	return keep
}

// ClaimFrom builds the claim for a volume from the manifest saved on the volume. If the claim's namespace
// differs from the one that the manifest was saved in, references into the old namespace are dropped: the
// volume has its data already.
//
// The class is always that of the volume, not that of the manifest: a claim without a class would get the
// cluster's default, and the binder requires both to be equal.
func ClaimFrom(pv *corev1.PersistentVolume, namespace string) (*corev1.PersistentVolumeClaim, error) {
	var c corev1.PersistentVolumeClaim
	if err := weight.Unmarshal([]byte(pv.Annotations[plans.ClaimAnnotation]), &c); err != nil {
		return nil, fmt.Errorf("annotation %s of volume %s is not a claim: %w", plans.ClaimAnnotation, pv.Name, err)
	}
	if c.Namespace != namespace {
		c.Spec.DataSource, c.Spec.DataSourceRef, c.Spec.Selector = nil, nil, nil
	}
	c.Namespace = namespace
	c.Spec.VolumeName = pv.Name
	class := pv.Spec.StorageClassName
	c.Spec.StorageClassName = &class
	return &c, nil
}

// VolumeFrom builds the second PersistentVolume object for the disk behind pv. It is meant for another
// cluster and reserved for one claim there from the start (S5). Everything that ties the object to its own
// cluster is dropped. `provisioned-by` stays, or the policy Delete would have no effect later. Names that
// differ there are translated with names.
func VolumeFrom(pv *corev1.PersistentVolume, ref corev1.ObjectReference, names plans.Storage) *corev1.PersistentVolume {
	notes := map[string]string{}
	for k, v := range pv.Annotations {
		if !slices.Contains(bindingNotes(), k) {
			notes[k] = v
		}
	}
	out := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pv.Name, Labels: maps.Clone(pv.Labels), Annotations: notes},
		Spec:       *pv.Spec.DeepCopy(),
	}
	out.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	out.Spec.ClaimRef = &ref
	translate(out, names)
	return out
}

// RefTo returns the claimRef of a volume that waits for a claim. Without a UID, only a claim of exactly this
// namespace and name can bind the volume, and the binder fills in the UID.
func RefTo(namespace, name string, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: name, UID: uid,
	}
}

// Handle names the disk behind a volume, independently of the object and the cluster. portable reports
// whether the same handle means the same disk in another cluster that has the driver.
func Handle(pv *corev1.PersistentVolume) (handle string, portable bool) {
	if s := SourceOf(pv); s != nil {
		return s.Handle, true
	}
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		return "hostPath^" + s.HostPath.Path, false
	case s.Local != nil:
		return "local^" + s.Local.Path, false
	default:
		// An in-tree source is identified by its whole content.
		raw, err := json.Marshal(s)
		if err != nil {
			return "volume^" + pv.Name, false
		}
		return string(raw), false
	}
}
