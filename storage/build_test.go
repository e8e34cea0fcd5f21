package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// The two objects of one disk may have any policy at first. The one that is created must never delete the disk.
func TestASecondVolumeObjectIsRetainAndPromisedFromTheStart(t *testing.T) {
	ref := RefTo("mall", "data-web-4", "")
	held := volume("shop", "old", unprotected, isBound)
	next := VolumeFrom(held, ref, plans.Storage{})
	if next.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the policy is %s", next.Spec.PersistentVolumeReclaimPolicy)
	}
	if diff := cmp.Diff(&ref, next.Spec.ClaimRef); diff != "" {
		t.Errorf("its claimRef: %s", diff)
	}
	if held.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || held.Spec.ClaimRef.Namespace != "shop" {
		t.Error("the source's own object was changed")
	}
}

// The binder takes a claim with these annotations for one that it has bound before, and declares it Lost.
func TestAClaimIsCreatedWithoutTheNotesOfItsLastBinding(t *testing.T) {
	class := "of the template"
	manifest, err := Manifest(claimIn("shop", "old", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{
			"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes", "volume.kubernetes.io/selected-node": "n1",
			plans.StampAnnotation: "web-abc/1/2", "example.com/note": "n",
		}
		c.Spec.StorageClassName, c.Spec.VolumeName = &class, "of the source"
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "first"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	pv := volume("mall", "", func(pv *corev1.PersistentVolume) {
		pv.Annotations[plans.ClaimAnnotation], pv.Spec.StorageClassName = manifest, "of the volume"
	})
	c, err := ClaimFrom(pv, "mall")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"example.com/note": "n"}, c.Annotations); diff != "" {
		t.Errorf("its annotations: %s", diff)
	}
	if c.Namespace != "mall" || c.UID != "" || c.Spec.VolumeName != "pv-1" || *c.Spec.StorageClassName != "of the volume" || c.Spec.DataSource != nil {
		t.Errorf("%+v, expected a claim of mall for volume pv-1 and its class, without a source of data", c)
	}
}
