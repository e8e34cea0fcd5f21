package preflight

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a patch takes away is not a finding, and what it brings is one.
func TestChecksLookAtThePodsAsTheyWillBe(t *testing.T) {
	nvme := node("n1", "x", "4")
	nvme.Labels["disk"] = "nvme"
	for _, c := range []struct {
		name, spec, patch string
		check             func(context.Context, inspection) ([]Finding, error)
		want              []string
	}{
		{
			name: "a node that the set does not find", check: nodesFit, spec: "nodeSelector: {disk: ssd}\ncontainers: [{name: web}]",
			want: []string{"none of 1 nodes can take it: 1 not what nodeSelector or node affinity ask for"},
		},
		{
			name: "a node that the patched set finds", check: nodesFit, spec: "nodeSelector: {disk: ssd}\ncontainers: [{name: web}]",
			patch: "spec: {template: {spec: {nodeSelector: {disk: nvme}}}}",
		},
		{
			name: "more than a node has", check: nodesFit, spec: "containers: [{name: web}]",
			patch: "spec: {template: {spec: {containers: [{name: web, resources: {requests: {cpu: 8}}}]}}}",
			want:  []string{"none of 1 nodes can take it: 1 with too little cpu"},
		},
		{
			name: "a name that changes", check: oldNames, spec: "containers: [{name: web, env: [{name: PEER, value: web-0.web.shop.svc}]}]",
			want: []string{"it names something in namespace shop"},
		},
		{
			name: "a name that the patch changes", check: oldNames, spec: "containers: [{name: web, env: [{name: PEER, value: web-0.web.shop.svc}]}]",
			patch: "spec: {template: {spec: {containers: [{name: web, env: [{name: PEER, value: web-0.web.mall.svc}]}]}}}",
		},
	} {
		i, _ := theatre{spec: c.spec, patch: c.patch, there: []client.Object{&nvme}}.inspected(t)
		i.ordinals.Replicas = 1
		found, err := c.check(t.Context(), i)
		var got []string
		for _, f := range found {
			got = append(got, f.Saw)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
}

// The binder compares modes as wholes.
func TestAClaimIsComparedWithItsVolume(t *testing.T) {
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	for _, c := range []struct {
		asks, has []corev1.PersistentVolumeAccessMode
		want      int
	}{
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}, 0},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, 1},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany}, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, 2},
	} {
		claim.Spec.AccessModes, pv.Spec.AccessModes = c.asks, c.has
		if found := mismatch(claim, pv); len(found) != c.want {
			t.Errorf("claim %v, volume %v: got %v, expected %d findings", c.asks, c.has, found, c.want)
		}
	}
}
