package sets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAnOrdinalStaysUpWhileAnotherPodMountsItsClaim(t *testing.T) {
	mounting := func(name, claim string) corev1.Pod {
		p := corev1.Pod{}
		p.Name = name
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	w := Steps{Pair: clusters.Pair{Plan: &plans.Plan{Source: plans.Ref{Namespace: "shop", Name: "web"}, Claims: []plans.ClaimMove{{Template: "data"}}}}}
	m := plans.StepContext{Step: plans.Step{Op: plans.Shrink, Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source}}
	own := mounting("web-4", "data-web-4")
	for _, c := range []struct {
		pods []corev1.Pod
		want string
	}{
		{[]corev1.Pod{own, mounting("web-3", "data-web-3")}, ""},
		{[]corev1.Pod{own, mounting("backup", "data-web-4")}, "data-web-4 of shop/web is also mounted by pod backup"},
		{[]corev1.Pod{mounting("backup", "data-web-4")}, "mounted by pod backup"},
	} {
		if got := w.shared(c.pods, m); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("said %q, expected %q", got, c.want)
		}
	}
}
