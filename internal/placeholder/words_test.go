package placeholder

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Who waits for a placeholder is told whether somebody has to act, and what there is to do.
func TestWhoHasToActForAPlaceholderIsSaid(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "web:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
	}
	no := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "0/3 nodes are available."}}}
	}
	const act, wait = "you must act: ", "and the plan continues by itself when it is there"
	for name, c := range map[string]struct {
		node   string
		status corev1.PodStatus
		want   []string
	}{
		"new":            {want: []string{"scheduler default-scheduler has said nothing of it yet", wait, "see that this scheduler runs", "--skip-places", "--placeholder off"}},
		"no node":        {status: no("Unschedulable"), want: []string{"0/3 nodes are available.", act + "unless a node for it is on its way, make room"}},
		"gated":          {status: no("SchedulingGated"), want: []string{act + "lift its scheduling gates"}},
		"its image":      {node: "n", status: waiting("ImagePullBackOff"), want: []string{act + "see that its node can pull this image"}},
		"its Secret":     {node: "n", status: waiting("CreateContainerConfigError"), want: []string{act + "make the Secret or ConfigMap"}},
		"something else": {node: "n", status: waiting("CreateContainerError"), want: []string{act + "`kubectl describe` of it says more"}},
		"pulling":        {node: "n", status: waiting("ContainerCreating"), want: []string{"waits: ContainerCreating", wait}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: c.node, Containers: []corev1.Container{{Name: "web"}}}, Status: c.status}
		got := Read(pod).Words()
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, expected %q", name, got, want)
			}
		}
		if strings.Contains(got, act) == strings.Contains(got, wait) {
			t.Errorf("%s: it is not said whether to act: %q", name, got)
		}
	}
}

// How long a place took is read from the placeholder: until it had a node, or until the last of its containers was started.
func TestHowLongAPlaceTook(t *testing.T) {
	made := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	at := func(s int) metav1.Time { return metav1.NewTime(made.Add(time.Duration(s) * time.Second)) }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Status: corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}},
		ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(40)}}},
			{LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(50)}}},
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(20)}}},
		},
	}}
	for want, c := range map[time.Duration]struct {
		pod  *corev1.Pod
		want plans.Proof
	}{3 * time.Second: {pod, plans.Scheduled}, 50 * time.Second: {pod, plans.Warm}, 0: {&corev1.Pod{}, plans.Warm}} {
		if got := Took(c.pod, c.want); got != want {
			t.Errorf("%s: %s, expected %s", c.want, got, want)
		}
	}
}

// A container that could not be started has an end and no beginning that means anything, and each time that it is tried again
// it has a later one. Its place was there the first time.
func TestHowLongAPlaceTookIsOfTheFirstTry(t *testing.T) {
	made := time.Unix(1_000_000, 0)
	failed := func(restarts int32, after time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{RestartCount: restarts, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: metav1.Unix(0, 0), FinishedAt: metav1.NewTime(made.Add(after)),
		}}}
	}
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		want   time.Duration
	}{
		"the first time":  {failed(0, 4*time.Second), 4 * time.Second},
		"the second time": {failed(1, 14*time.Second), 4 * time.Second},
		"the third time":  {failed(2, 34*time.Second), 4 * time.Second},
		"it runs":         {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(made.Add(4 * time.Second))}}}, 4 * time.Second},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{c.status}}}
		if got := Took(pod, plans.Warm); got != c.want {
			t.Errorf("%s: it took %s, expected %s", name, got, c.want)
		}
	}
}
