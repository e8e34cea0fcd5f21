package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// The Secrets with which a volume is deleted and modified are noted on it, and not in its
// source.
func TestSecretsThatAnnotationsNameAreMappedLikeThoseOfTheSource(t *testing.T) {
	const deletion, modify = "volume.kubernetes.io/provisioner-deletion-secret", "volume.kubernetes.io/controller-modify-secret"
	pv := volume("shop", "old", func(pv *corev1.PersistentVolume) {
		pv.Annotations[deletion+"-name"], pv.Annotations[deletion+"-namespace"] = "provisioner", "rook"
		pv.Annotations[modify+"-name"], pv.Annotations[modify+"-namespace"] = "modifier", "rook"
		pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "rook", Name: "node"}
	})
	want := []corev1.SecretReference{{Namespace: "rook", Name: "node"}, {Namespace: "rook", Name: "provisioner"}, {Namespace: "rook", Name: "modifier"}}
	if diff := cmp.Diff(want, Secrets(pv)); diff != "" {
		t.Errorf("its Secrets: %s", diff)
	}
	out := VolumeFrom(pv, RefTo("mall", "data-web-4", ""), plans.Storage{Secrets: map[string]string{
		"rook/node": "ceph/node", "rook/provisioner": "ceph/provisioner-west", "rook/modifier": "ceph/modifier",
	}})
	want = []corev1.SecretReference{{Namespace: "ceph", Name: "node"}, {Namespace: "ceph", Name: "provisioner-west"}, {Namespace: "ceph", Name: "modifier"}}
	if diff := cmp.Diff(want, Secrets(out)); diff != "" {
		t.Errorf("those of the other cluster: %s", diff)
	}
	if pv.Annotations[deletion+"-namespace"] != "rook" || pv.Spec.CSI.NodeStageSecretRef.Namespace != "rook" {
		t.Error("the source's own object was changed")
	}
	delete(pv.Annotations, modify+"-namespace")
	if got := Secrets(pv); len(got) != 2 {
		t.Errorf("half a note counts as a Secret: %v", got)
	}
}
