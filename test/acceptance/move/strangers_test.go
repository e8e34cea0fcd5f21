package move_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A pod that waits for a claim of the set on the side that will receive it gets no disk, on the way there and on the way
// back: the ordinal stays up where it is, and its claim is not made before the pod has gone (S20).
func TestAPodThatWaitsForAClaimGetsNoDisk(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		w := s.watched()
		s.planned()
		gone := s.put(s.destination, strayPod(s.destination, "data-web-1"))
		run(t, s.applyArgs()...).expect(t, blocked, "claims-awaited", "names claim data-web-1", "delete the pod")
		gone()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-1 Tighten")
		s.keepsOut(s.destination, s.source, "resume", "moved: 3 ordinals")
		s.keepsOut(s.source, s.destination, "abort", "aborted")
		proper(t, w, 1)
	})
}

// keepsOut lets a pod on the side that receives ordinal 1 wait for its claim, and requires that the command waits for that
// pod with the ordinal up, and goes on when it is gone.
func (s *migration) keepsOut(to, from *end, command, says string) {
	t := s.t
	t.Helper()
	stray := strayPod(to, "data-web-1")
	stray.Spec.SchedulerName = "" // it runs as soon as it can
	gone := s.put(to, stray)
	p := start(t, s.args(command)...)
	p.until("pod stray (Pending)", "names claim data-web-1")
	if !s.gone(to, &corev1.PersistentVolumeClaim{}, "data-web-1") {
		t.Error("the claim of ordinal 1 was made")
	}
	var pod corev1.Pod
	if err := to.Get(t.Context(), to.key("stray"), &pod); err != nil || pod.Spec.NodeName != "" {
		t.Errorf("the pod is on node %q (%v)", pod.Spec.NodeName, err)
	}
	var up corev1.Pod
	if err := from.Get(t.Context(), from.key("web-1"), &up); err != nil || !isReady(&up) {
		t.Errorf("ordinal 1 is not up where it was: %v", err)
	}
	gone()
	p.end().expect(t, done, says)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
