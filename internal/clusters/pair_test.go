package clusters

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Of the pods of a namespace, those that concern a plan are kept: the pods of the set, whatever their ordinals, and
// what mounts one of its claims, under any name.
func TestThePodsThatConcernAPlanAreKept(t *testing.T) {
	p := &plans.Plan{Name: "web", Source: plans.Ref{Namespace: "shop", Name: "web"}, Claims: []plans.ClaimMove{{Template: "data"}}, Shared: []plans.SharedVolume{{Claim: "common"}}}
	keep := Pair{Plan: p}.concerned(plans.Source).Keep
	for _, c := range []struct {
		name, mounts string
		kept         bool
	}{
		{"web-0", "data-web-0", true},
		{"web-1", "", true},
		{"web-7", "", true},
		{"backup", "data-web-1", true},
		{"backup", "common", true},
		{"backup", "data-web-7", true},
		{"backup", "data-other-1", false},
		{"backup", "", false},
		{"web-x", "data-web-x", false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: c.name, UID: "1"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch"}}}}
		if c.mounts != "" {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.mounts}}})
		}
		got := keep(pod)
		if (got != nil) != c.kept {
			t.Errorf("pod %s, which mounts %q: kept: %t", c.name, c.mounts, got != nil)
		}
		if kept, ok := got.(*corev1.Pod); ok && c.mounts != "" {
			if v := kept.Spec.Volumes; kept.UID != "1" || len(v) != 1 || v[0].PersistentVolumeClaim.ClaimName != c.mounts {
				t.Errorf("pod %s is kept with the volumes %v", c.name, v)
			}
		}
	}
	if o := keep(&corev1.Node{}); o != nil {
		t.Errorf("kept %v", o)
	}
}

// Warnings that no request listens for are dropped.
func TestWarningsReachTheRequestThatListens(t *testing.T) {
	Warnings{}.HandleWarningHeaderWithContext(t.Context(), 299, "", "nobody listens")
	ctx, heard := Hearing(t.Context())
	Warnings{}.HandleWarningHeaderWithContext(ctx, 299, "", "would violate PodSecurity")
	if got := strings.Join(*heard, ";"); got != "would violate PodSecurity" {
		t.Errorf("heard %q", got)
	}
}
