package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// enforced says that broken pods of an old revision are replaced (KEP-3541).
func (p *pass) enforced() bool { return p.set.strategy() == EnforcedRollingUpdate }

func (p *pass) outdated(r replica) bool { return revisionOf(r.Pod) != p.target.Name }

// due says whether a pod is to be replaced for the update, now or later (ER-1).
func (p *pass) due(r replica) bool {
	return created(r.Pod) && !terminating(r.Pod) && p.set.staged(r.ordinal) && p.outdated(r)
}

// exempt says that nobody waits for the health of a pod, since it is to be replaced
// whatever its state (ER-2, ER-3). While the set is paused it is not.
func (p *pass) exempt(r replica) bool { return p.forces() && p.due(r) && !p.set.Paused }

// update deletes what is of an old revision, so that it comes back as the new one. It is
// reached when all else is done; in order, that is with every pod of the range available
// (MU-5, MU-14).
func (p *pass) update(ctx context.Context) error {
	for _, r := range p.victims() {
		forced := p.forces() && !ready(r.Pod) // ER-6
		if gone, err := p.replace(ctx, r, forced); !gone {
			return err
		}
		p.begins = p.enforced()
		if forced {
			p.outcome.Forced = append(p.outcome.Forced, Forced{Pod: r.Name, UID: r.UID, Stuck: p.world.Now.Sub(notReadySince(r.Pod))})
		}
		if revisionOf(r.Pod) == p.current.Name && p.status.CurrentReplicas > 0 {
			p.status.CurrentReplicas-- // ST-3
		}
	}
	return nil
}

// victims are the pods to delete now for the update, in their order.
func (p *pass) victims() []replica {
	var broken, serving []replica // that are due, the highest ordinal first
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
	// MU-8: nothing gets worse when what is not ready goes.
	return append(broken, p.within(p.unavailable(), serving)...)
}

// within are the first pods of the list that may go together without more than maxUnavailable being
// down. One that is ready and not available yet is down already, and serves all the same: it goes
// in its own place, and one that is not ready takes none (MU-7).
func (p *pass) within(down int, list []replica) []replica {
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

// highest is the pod that goes where there is no maxUnavailable: the highest ordinal that is due,
// whatever its state, once all above it are available (MU-8).
func (p *pass) highest() []replica {
	for o := p.set.start() + p.set.replicas() - 1; p.set.has(o) && p.set.staged(o); o-- {
		switch r := p.at(o); {
		case p.due(r):
			return []replica{r}
		case p.set.down(r.Pod, p.world.Now):
			return nil
		}
	}
	return nil
}

func first(n int, list []replica) []replica { return list[:max(0, min(n, len(list)))] }

// forced are the pods that EnforcedRollingUpdate deletes now. The highest ordinal goes
// first and alone, and nobody goes while it is not available (ER-5). What is in flight
// counts against maxUnavailable, and what is due and not ready does not (ER-7).
func (p *pass) forced(broken, serving []replica) []replica {
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

// canaryDown reports whether the update waits for the highest ordinal to come back.
func (p *pass) canaryDown() bool {
	c := p.canary()
	return c != nil && !p.due(*c) && p.set.down(c.Pod, p.world.Now)
}

// canary is the highest ordinal that is staged, or nil.
func (p *pass) canary() *replica {
	last := p.set.start() + p.set.replicas() - 1
	if p.set.replicas() == 0 || !p.set.staged(last) {
		return nil
	}
	r := p.at(last)
	return &r
}

// tellOfForce tells what a pod that is deleted in a broken state was like (ER-6): once it
// is gone nobody can look.
func (p *pass) tellOfForce(r replica) {
	p.do.Tell(Event{
		Type: corev1.EventTypeWarning, Reason: "ForcedReplacement", Related: r.Pod,
		Message: fmt.Sprintf("pod %s of revision %s is not available (%s) and is replaced by one of %s", r.Name, revisionOf(r.Pod), condition(r.Pod), p.target.Name),
	})
}

// condition says in a few words what keeps a pod from being available.
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

// steady is condition without what changes while the same thing fails again and again: the status
// would be written at each turn.
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

// tellOf tells of what was done to a pod, in the words that the built-in controller has for
// it (EV-1): dashboards and people look for them.
func (p *pass) tellOf(verb string, pod *corev1.Pod, err error) {
	e := Event{Type: corev1.EventTypeNormal, Reason: "Successful" + verb, Message: fmt.Sprintf("%s Pod %s in %s %s successful", verb, pod.Name, p.set.Kind.Kind, p.set.Name)}
	if err != nil {
		e.Type, e.Reason = corev1.EventTypeWarning, "Failed"+verb
		e.Message = fmt.Sprintf("%s Pod %s in %s %s failed error: %v", verb, pod.Name, p.set.Kind.Kind, p.set.Name, err)
	}
	p.do.Tell(e)
}

func (p *pass) tellOfClaim(c *corev1.PersistentVolumeClaim, pod *corev1.Pod, err error) {
	e := Event{
		Type: corev1.EventTypeNormal, Reason: "SuccessfulCreate",
		Message: fmt.Sprintf("Create Claim %s Pod %s in %s %s success", c.Name, pod.Name, p.set.Kind.Kind, p.set.Name),
	}
	if err != nil {
		e.Type, e.Reason = corev1.EventTypeWarning, "FailedCreate"
		e.Message = fmt.Sprintf("Create Claim %s for Pod %s in %s %s failed error: %v", c.Name, pod.Name, p.set.Kind.Kind, p.set.Name, err)
	}
	p.do.Tell(e)
}
