package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// The Secrets for the deletion and modification of a volume are recorded in its annotations, not in its
// source.
func TestSecretsInAnnotationsAreMapped(t *testing.T) {
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

func TestZoneLabelsAreMappedLikeNodeAffinity(t *testing.T) {
	const zone, old = corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone
	rules := []plans.Topology{
		{Key: zone, Values: map[string]string{"east-1": "west-1", "east-2": "west-2"}},
		{Key: old, As: zone, Values: map[string]string{"east-1": "west-1"}},
		{Key: "app", Values: map[string]string{"web": "shop"}},
	}
	for name, c := range map[string]struct{ labels, want map[string]string }{
		"none":           {nil, nil},
		"one zone":       {map[string]string{zone: "east-1", "app": "web"}, map[string]string{zone: "west-1", "app": "web"}},
		"several zones":  {map[string]string{zone: "east-1__east-2__east-3"}, map[string]string{zone: "west-1__west-2__east-3"}},
		"another key":    {map[string]string{old: "east-1"}, map[string]string{zone: "west-1"}},
		"without a rule": {map[string]string{corev1.LabelTopologyRegion: "east"}, map[string]string{corev1.LabelTopologyRegion: "east"}},
	} {
		pv := volume("shop", "old", func(pv *corev1.PersistentVolume) { pv.Labels = c.labels })
		out := VolumeFrom(pv, RefTo("mall", "data-web-4", ""), plans.Storage{Topology: rules})
		if diff := cmp.Diff(c.want, out.Labels); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.labels[zone] != "" && c.labels[zone] == out.Labels[zone] {
			t.Errorf("%s: the source's own labels were changed", name)
		}
	}
}
