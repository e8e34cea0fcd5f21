package placeholder

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// beganWithin is how soon a kubelet begins a pod that it was given. It is slower where a node is busy, so that a clock which is
// ahead of that is told only with a doubt.
const beganWithin = 5 * time.Second

// clock says how far the clock of the node of a placeholder is off that of its API server, or returns "". The API server
// notes when a pod gets its node, and the kubelet when it begins with it, which is later. Both are in whole seconds, so a
// difference of less than two is not seen.
func clock(pod *corev1.Pod) string {
	c := scheduled(pod)
	if c == nil || c.Status != corev1.ConditionTrue || c.LastTransitionTime.IsZero() || pod.Status.StartTime == nil {
		return ""
	}
	switch began := pod.Status.StartTime.Sub(c.LastTransitionTime.Time); {
	case began <= -2*time.Second:
		return fmt.Sprintf("its clock is at least %s behind that of its API server", -began-time.Second)
	case began > beganWithin:
		return fmt.Sprintf("its kubelet began %s after its API server gave it the pod: it was slow, or its clock is ahead", began)
	}
	return ""
}
