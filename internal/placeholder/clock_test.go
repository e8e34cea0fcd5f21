package placeholder

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A clock that is behind is told for sure, one that is ahead with a doubt, and what whole seconds cannot tell not at all.
func TestAClockThatIsOffIsSeen(t *testing.T) {
	given := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]string{
		-time.Hour:       "its clock is at least 59m59s behind",
		-2 * time.Second: "its clock is at least 1s behind",
		-time.Second:     "", // 0.1 s, rounded down on both sides
		0:                "",
		5 * time.Second:  "", // a kubelet that is busy
		6 * time.Second:  "its kubelet began 6s after its API server gave it the pod: it was slow, or its clock is ahead",
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{
			StartTime:  &metav1.Time{Time: given.Add(after)},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(given)}},
		}}
		if got := Read(pod).Clock; !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, expected %q", after, got, want)
		}
		pod.Status.StartTime = nil
		if got := Read(pod).Clock; got != "" {
			t.Errorf("a kubelet that has not begun: %s", got)
		}
	}
}
