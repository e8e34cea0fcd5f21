package preview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Estimate is how long a move may take, judged by how long the set's own pods took to start.
type Estimate struct {
	// Turns is how many times pods stop and start one after the other: once for each wave, and once for each ordinal if
	// the set starts its pods in order.
	Turns, Waves int
	// Start is the median time that a pod took to become available, over Of pods that never restarted.
	Start time.Duration
	Of    int
	// Stop is the longest time that a pod may take to stop.
	Stop time.Duration
	// Attached reports that Start has the time for which volumes are attached: every pod says when it had a node.
	Attached bool
	// Gated reports that the plan also waits for gates.
	Gated bool
}

// EstimateOf returns the estimate for a leg, or false if no pod tells how long it took to start.
func EstimateOf(p *plans.Plan, l plans.Leg, set *appsv1.StatefulSet, pods []*corev1.Pod) (Estimate, bool) {
	var took []time.Duration
	attached := true
	for _, pod := range pods {
		if d, placed, ok := started(pod); ok {
			took, attached = append(took, d), attached && placed
		}
	}
	if set == nil || len(took) == 0 {
		return Estimate{}, false
	}
	slices.Sort(took)
	e := Estimate{Of: len(took), Start: took[len(took)/2] + time.Duration(set.Spec.MinReadySeconds)*time.Second, Attached: attached, Gated: len(p.Gates) > 0}
	e.Stop = corev1.DefaultTerminationGracePeriodSeconds * time.Second
	if s := set.Spec.Template.Spec.TerminationGracePeriodSeconds; s != nil {
		e.Stop = time.Duration(*s) * time.Second
	}
	for wave := range p.Waves(l) {
		e.Waves++
		e.Turns += int(wave.Replicas)
	}
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		e.Turns = e.Waves
	}
	return e, true
}

// started returns how long a pod took until it was Ready, and false if it is not known: it is not Ready, or a container has
// restarted since. It counts from the time at which the pod had a node, or, if that is not known, from its acceptance by
// the kubelet: that may come once its volumes are attached. placed reports the former.
func started(pod *corev1.Pod) (took time.Duration, placed, ok bool) {
	from := pod.Status.StartTime
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			from, placed = &c.LastTransitionTime, true
		}
	}
	if from == nil || pod.DeletionTimestamp != nil ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }) {
		return 0, false, false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			took := c.LastTransitionTime.Sub(from.Time)
			return took, placed, took >= 0
		}
	}
	return 0, false, false
}

// Most returns how long the move takes at most, without what the estimate leaves out.
func (e Estimate) Most() time.Duration { return time.Duration(e.Turns) * (e.Start + e.Stop) }

// About returns how long the move takes if every pod stops at once.
func (e Estimate) About() string { return rough(time.Duration(e.Turns) * e.Start) }

// String returns the estimate in one sentence: one number, how long it may be at most, what it is made of, and what it
// leaves out.
func (e Estimate) String() string {
	most, about := e.Most(), "about "+e.About()
	if rough(most) != e.About() {
		about += ", up to " + rough(most) + " if every pod needs its whole grace period"
	}
	turns := counted(e.Waves, "wave")
	if e.Turns != e.Waves {
		turns += ", " + counted(e.Turns, "ordinal") + " one after the other"
	}
	besides := "detaching and attaching"
	if e.Attached {
		besides = "detaching"
	}
	out := fmt.Sprintf("%s: %s, each with about %s to start (median of %s) and up to %s to stop; %s its volumes and scheduling come on top", about, turns, seconds(e.Start), counted(e.Of, "pod"), seconds(e.Stop), besides)
	if e.Gated {
		out += ", and so do gates and pauses"
	}
	return out + ". The first wave will show how long one really takes"
}

// rough returns a duration in whole minutes, or in seconds below a minute.
func rough(d time.Duration) string {
	switch m := int((d + time.Minute - 1) / time.Minute); {
	case d < time.Minute:
		return seconds(d)
	case m < 120:
		return fmt.Sprintf("%d min", m)
	default:
		return fmt.Sprintf("%d h", (m+30)/60)
	}
}

// seconds returns a duration in seconds, at least one, or in minutes if there are many.
func seconds(d time.Duration) string {
	if d >= 10*time.Minute {
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d s", cmp.Or(int(d.Round(time.Second)/time.Second), 1))
}
