package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// enforced reports whether broken pods of an old revision are replaced (KEP-3541).
func (p *picture) enforced() bool { return p.set.strategy() == EnforcedRollingUpdate }

func (p *picture) outdated(r replica) bool { return revisionOf(r.Pod) != p.target.Name }

// due reports whether a pod must be replaced for the update, now or later (ER-1).
func (p *picture) due(r replica) bool {
	return created(r.Pod) && !terminating(r.Pod) && p.set.staged(r.ordinal) && p.outdated(r)
}

// exempt reports whether the health of a pod is not waited for, since it is replaced whatever its state
// (ER-2, ER-3). While the set is paused no pod is exempt.
func (p *picture) exempt(r replica) bool { return p.forces() && p.due(r) && !p.set.Paused }

// victims returns the pods to delete now for the update, in their order.
func (p *picture) victims() []replica {
	var broken, serving []replica // those that are due, the highest ordinal first
	for _, r := range slices.Backward(p.living) {
		switch {
		case !p.due(r):
		case ready(r.Pod):
			serving = append(serving, r)
		default:
			broken = append(broken, r)
		}
	}
	switch {
	case p.set.strategy() == appsv1.OnDeleteStatefulSetStrategyType, p.set.Paused:
		return nil // MU-15
	case p.forces():
		return p.forced(broken, serving)
	case p.set.OneAtATime:
		return p.highest()
	}
	// MU-8: the deletion of a pod that is not ready makes nothing worse.
	return append(broken, p.within(p.unavailable(), serving)...)
}

// within returns the first pods of the list that may be deleted together with no more than maxUnavailable
// down. A pod that is ready and not available yet is down already, but still serves: it counts only once. A
// pod that is not ready is always allowed (MU-7).
func (p *picture) within(down int, list []replica) []replica {
	for k, r := range list {
		if !p.set.down(r.Pod, p.world.Now) {
			down++
		}
		if ready(r.Pod) && down > p.set.MaxUnavailable() {
			return list[:k]
		}
	}
	return list
}

// highest returns the pod to replace if there is no maxUnavailable: the highest ordinal that is due,
// whatever its state, once all above it are available (MU-8).
func (p *picture) highest() []replica {
	for n := p.set.replicas() - 1; n >= 0; n-- {
		r := p.at(int32(p.set.nth(n))) //nolint:gosec // of the range
		switch {
		case !p.set.staged(r.ordinal):
			return nil
		case p.due(r):
			return []replica{r}
		case p.set.down(r.Pod, p.world.Now):
			return nil
		}
	}
	return nil
}

func first(n int, list []replica) []replica { return list[:max(0, min(n, len(list)))] }

// forced returns the pods that EnforcedRollingUpdate deletes now. The highest ordinal is deleted first and
// alone, and no other pod is deleted while it is not available (ER-5). Pods in flight count against
// maxUnavailable; pods that are due and not ready do not (ER-7).
func (p *picture) forced(broken, serving []replica) []replica {
	inFlight := p.missing()
	for _, r := range p.living {
		if p.set.down(r.Pod, p.world.Now) && (!p.due(r) || ready(r.Pod)) {
			inFlight++
		}
	}
	switch canary := p.canary(); {
	case canary == nil, p.canaryDown():
		return nil
	case p.due(*canary):
		return p.within(inFlight, []replica{*canary})
	case !p.set.ordered(): // ER-9
		return append(broken, p.within(inFlight, serving)...)
	}
	both := append(broken, serving...) // ER-8: broken or not, the highest first
	slices.SortFunc(both, func(a, b replica) int { return cmp.Compare(b.ordinal, a.ordinal) })
	return first(p.set.MaxUnavailable(), p.within(inFlight, both))
}

// canaryDown reports whether the update waits for the highest ordinal to become available again.
func (p *picture) canaryDown() bool {
	c := p.canary()
	return c != nil && !p.due(*c) && p.set.down(c.Pod, p.world.Now)
}

// canary returns the highest ordinal if it is staged, else nil.
func (p *picture) canary() *replica {
	if p.set.replicas() == 0 {
		return nil
	}
	last := int32(p.set.end() - 1) //nolint:gosec // of the range
	if !p.set.staged(last) {
		return nil
	}
	r := p.at(last)
	return &r
}

// condition names in a few words what keeps a pod from being available.
func condition(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	if pod.Status.Phase != corev1.PodRunning {
		return string(pod.Status.Phase)
	}
	return notReady
}

const notReady = "not ready, or not for long enough"

// settleTime is for how long a new pod that is pending has no other reason than that: it passes through several
// reasons within moments, and the status would be written at each of them.
const settleTime = 2 * time.Second

func settledAt(pod *corev1.Pod) time.Time { return pod.CreationTimestamp.Add(settleTime) }

// reason names what keeps a pod from being available, for a condition.
func (p *picture) reason(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodPending && p.world.Now.Before(settledAt(pod)) {
		return string(pod.Status.Phase)
	}
	return steady(pod)
}

// steady is condition without the parts that change while the same failure repeats: the status would be
// written at each repetition.
func steady(pod *corev1.Pod) string {
	why := condition(pod)
	if why == "ErrImagePull" {
		return "ImagePullBackOff"
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		again := !c.Ready && c.RestartCount > 0 && c.LastTerminationState.Terminated != nil
		if again && slices.Contains([]string{"CrashLoopBackOff", notReady, string(pod.Status.Phase)}, why) {
			return fmt.Sprintf("container %s was restarted and is not ready", c.Name)
		}
	}
	return why
}
