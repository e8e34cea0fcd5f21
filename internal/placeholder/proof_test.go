package placeholder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Only what changes the status of a placeholder, and does not bring its place or end it, changes nothing.
func TestWhichChangeOfAPlaceholderLetsItWaitOn(t *testing.T) {
	p := &plans.Plan{Placeholder: plans.Placeholder{Proof: plans.Warm}}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"its image is being pulled": {func(pod *corev1.Pod) {
			pod.ResourceVersion, pod.Status.Message = "2", "pulling"
		}, true},
		"it runs":                  {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }, false},
		"it has ended":             {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, false},
		"it has another node":      {func(pod *corev1.Pod) { pod.Spec.NodeName = "b" }, false},
		"it is given other labels": {func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "web"} }, false},
	} {
		was := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "web"}}}}
		now := was.DeepCopy()
		c.change(now)
		if got := StillWaits(p, was, now); got != c.want {
			t.Errorf("%s: it waits on: %t", name, got)
		}
	}
}
