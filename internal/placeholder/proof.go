package placeholder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Proof says how far a placeholder has come.
type Proof struct {
	// Node is where the scheduler has put it, or "".
	Node string
	// Warm reports that all images are there and all volumes are mounted.
	Warm bool
	// Ended reports that it holds no place any more: it was evicted, preempted, or has reached its deadline.
	Ended bool
	// Stuck reports that the user has to act: it does not wait for something that is on its way.
	Stuck bool
	// Unbrought reports that the program that waits could not be brought: its image is not to be had, or does not run there.
	Unbrought bool
	// Unasked reports that the program has not ended well that asks what must be reached. Reached says how much of that was, such
	// as "3 of 3"; "" if nothing was asked, or nothing is known of it.
	Unasked bool
	Reached string
	// Clock says how far the clock of its node is off, or is "".
	Clock string
	// Unreached is how many of those that must be reached are not, while it waits for that.
	Unreached int
	// Why is the word of the scheduler or the kubelet for what is missing, such as ImagePullBackOff.
	Why string
	// Lacks says what is still missing, in the words of who said no; "" if nothing is.
	Lacks string
}

// Read returns what a placeholder proves. The words of the scheduler and the kubelet are those of its status.
func Read(pod *corev1.Pod) Proof {
	p := Proof{Node: pod.Spec.NodeName, Clock: clock(pod)}
	asked := answersOf(pod)
	p.Unasked, p.Reached = asked.open, asked.reached()
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		p.Ended = true
		p.Lacks = "it has ended: " + cmp.Or(strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message), "no reason is given")
		return p
	}
	if p.Node == "" {
		p.Lacks = fmt.Sprintf("scheduler %s has said nothing of it yet (no condition PodScheduled)", cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName))
		if c := scheduled(pod); c != nil && c.Status == corev1.ConditionFalse {
			p.Lacks = fmt.Sprintf("no node takes it: %s", cmp.Or(c.Message, c.Reason))
			p.Why = c.Reason
			p.Stuck = c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulingGated
		}
		return p
	}
	if pod.Status.Phase == corev1.PodRunning {
		p.Warm = true
		return p
	}
	if p.container(pod, asked) {
		return p
	}
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
		p.Lacks = fmt.Sprintf("the kubelet of node %s has not begun", p.Node)
		return p
	}
	p.Warm = true
	return p
}

// StillWaits reports whether a placeholder differs in its status alone from how it was looked at, and nothing follows from that
// but that it waits on.
func StillWaits(p *plans.Plan, was, now *corev1.Pod) bool {
	proof := Read(now)
	if proof.Ended || proof.Unbrought || proof.Why == notReached || proof.Has(p.Placeholder.Proof) {
		return false
	}
	return equality.Semantic.DeepEqual(apartFromStatus(was), apartFromStatus(now))
}

func apartFromStatus(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: *pod.ObjectMeta.DeepCopy(), Spec: pod.Spec}
	out.ResourceVersion, out.ManagedFields = "", nil
	return out
}

// container fills in what the first container lacks that lacks something, and reports whether there is one.
func (p *Proof) container(pod *corev1.Pod, asked asked) bool {
	for k, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name == asking && p.Unasked && asked.failed {
			p.Stuck, p.Why, p.Lacks, p.Unreached = true, notReached, asked.lacks(p.Node), max(asked.Asked-asked.Reached, 1)
			return true
		}
		if lacks, stuck := lackOf(s, k < len(pod.Status.InitContainerStatuses)); lacks != "" {
			p.Lacks = fmt.Sprintf("on node %s container %s (%s) %s", p.Node, s.Name, s.Image, lacks)
			p.Stuck, p.Unbrought = stuck, stuck && s.Name == tools
			if w := s.State.Waiting; w != nil {
				p.Why = w.Reason
			}
			return true
		}
	}
	return false
}

// lackOf returns what one container still lacks. One that was started has its image and its volumes, whether or not it
// could run the program that it was told to run. Only the one that brings the program must end well.
func lackOf(s corev1.ContainerStatus, brings bool) (lacks string, stuck bool) {
	w, ended := s.State.Waiting, s.State.Terminated
	started := s.State.Running != nil || ended != nil || s.LastTerminationState.Terminated != nil || failsToStart(w)
	switch {
	case brings && (failsToStart(w) || ended != nil && ended.ExitCode != 0):
		stuck = true
	case started:
		return "", false
	}
	if w == nil {
		return "waits", stuck
	}
	return "waits: " + strings.TrimSpace(w.Reason+" "+w.Message), stuck || broken(w)
}

// failsToStart reports whether the image and the volumes of a container are there, and its program could not be run.
func failsToStart(w *corev1.ContainerStateWaiting) bool {
	return w != nil && slices.Contains([]string{"RunContainerError", "StartError", "CrashLoopBackOff"}, w.Reason)
}

// broken reports whether a container waits for the user to act. The kubelet tries again.
func broken(w *corev1.ContainerStateWaiting) bool {
	return slices.Contains([]string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError",
	}, w.Reason)
}

// scheduled returns what a scheduler has said of a pod; nil if none has said anything.
func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for k := range pod.Status.Conditions {
		if pod.Status.Conditions[k].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[k]
		}
	}
	return nil
}
