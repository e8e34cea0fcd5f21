package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// vacancy proves that the pods of a wave have left a side, and its disks their nodes.
type vacancy struct {
	objects
	ends *ends
}

// vacate is the gate between the two sides (S1). For each ordinal of the wave it proves, in this order: the
// pod object is gone, its containers have stopped, the kubelet no longer uses the volumes, and no node has
// them attached any more. It never writes. The proofs go into the journal, at once if it must continue to
// wait.
func (v vacancy) vacate(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if m.Reversed {
		return v.neverRan(ctx, m)
	}
	if !m.InFlight() {
		return plans.Stop(reasons.JournalIncomplete, unknown(m)), nil
	}
	flight := *m.Flight
	flight.Pods, flight.WaitsThere = slices.Clone(flight.Pods), false
	s, err := v.left(ctx, m, &flight)
	if err == nil && s.Standing == plans.After {
		return v.proven(ctx, m, flight)
	}
	s.Undo.Flight = &flight
	return s, err
}

// neverRan is the gate of a wave that was reversed before it arrived on this side. The absence of pods is
// checked, not assumed: another writer may have restored the range after pods had been created.
func (v vacancy) neverRan(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for o := range m.Ordinals.All() {
		pod, err := v.Pod(ctx, m.From, o)
		if err != nil {
			return plans.Observation{}, err
		}
		if pod != nil {
			return v.leaving(m, pod).In(plans.Terminating), nil
		}
	}
	s, err := v.detachedAgain(ctx, m)
	return s.In(plans.Detaching).Idly(), err
}

// left waits until pods and volumes have left the side. It records in the flight what is known so far.
func (v vacancy) left(ctx context.Context, m plans.StepContext, flight *plans.Flight) (plans.Observation, error) {
	for o := range m.Ordinals.All() {
		if s, err := v.gone(ctx, m, flight, o); err != nil || s.Standing != plans.After {
			return s.In(plans.Terminating), err
		}
	}
	for i := range flight.Pods {
		if s, err := v.stopped(ctx, m, flight, &flight.Pods[i]); err != nil || s.Standing != plans.After {
			return s.In(plans.Detaching).Idly(), err
		}
	}
	s, err := v.detached(ctx, flight, m.From)
	if err == nil && s.Standing == plans.After {
		s, err = v.detached(ctx, v.apart(flight), m.To())
		if flight.WaitsThere = s.Standing != plans.After; flight.WaitsThere {
			s.Reason = fmt.Sprintf("on the %s, %s", m.To(), s.Reason)
		}
	}
	return s.In(plans.Detaching).Idly(), err
}

// proven returns the observation of a wave that has left, with the proofs to keep.
func (v vacancy) proven(ctx context.Context, m plans.StepContext, flight plans.Flight) (plans.Observation, error) {
	done := plans.Done()
	done.Undo.Flight = &flight
	var proofs []string
	for i, pod := range flight.Pods {
		free, err := v.freed(ctx, m, flight.Of(pod.Ordinal))
		if err != nil {
			return plans.Observation{}, err
		}
		flight.Pods[i].Proof = fmt.Sprintf("pod %s (UID %s) is gone, %s%s", v.Plan.Pod(m.From, pod.Ordinal), pod.UID, pod.Stopped, free)
		proofs = append(proofs, flight.Pods[i].Proof)
	}
	done.Reason = strings.Join(proofs, "; ")
	return done, nil
}

// gone waits until the pod object of an ordinal is gone. The set's own controller may recreate a pod before
// its cache shows the new range. Such a pod leaves like the first one, and then its end must be proven.
func (v vacancy) gone(ctx context.Context, m plans.StepContext, flight *plans.Flight, ordinal int32) (plans.Observation, error) {
	pod, err := v.Pod(ctx, m.From, ordinal)
	if err != nil || pod == nil {
		return plans.Done(), err
	}
	known := flight.Pod(ordinal)
	if pod.UID != known.UID && !v.ofSet(pod, m.From) {
		if pod.DeletionTimestamp != nil {
			return v.leaving(m, pod), nil
		}
		return plans.Stop(reasons.PodForeign, fmt.Sprintf("pod %s of %s was recreated after it left the set's range, and not by the set; find out what created it and delete it", pod.Name, v.Plan.On(m.From))), nil
	}
	if pod.DeletionTimestamp != nil {
		v.ends.lasted(pod.UID)
	}
	flight.Put(v.noted(pod, known))
	return v.leaving(m, pod), nil
}

// noted returns the record of an existing pod, based on the record of its ordinal's last known pod.
func (vacancy) noted(pod *corev1.Pod, known plans.Pod) plans.Pod {
	next := plans.Pod{Ordinal: known.Ordinal, UID: pod.UID, Node: pod.Spec.NodeName, Grace: Grace(pod)}
	if pod.UID == known.UID && pod.Spec.NodeName == known.Node {
		next, next.Grace = known, max(known.Grace, next.Grace)
	}
	if next.Stopped == "" && ended(pod) {
		next.Stopped = fmt.Sprintf("the kubelet of node %s reported the end of its containers", pod.Spec.NodeName)
	}
	return next
}

// leaving waits for an existing pod to be deleted.
func (v vacancy) leaving(m plans.StepContext, pod *corev1.Pod) plans.Observation {
	if pod.DeletionTimestamp == nil {
		return plans.Wait(reasons.PodTerminating, fmt.Sprintf("pod %s of %s will be deleted by the controller of its set", pod.Name, v.Plan.On(m.From)))
	}
	return plans.Wait(reasons.PodTerminating, fmt.Sprintf("pod %s of %s is terminating", pod.Name, v.Plan.On(m.From))).Idly()
}

func (v vacancy) ofSet(pod *corev1.Pod, side plans.Side) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && plans.IsSet(owner.Kind) && owner.Name == v.Plan.On(side).Name
}

// ended reports whether the kubelet has reported the end of every container of a pod that is being deleted. A
// forced deletion, or a deletion because the node is gone, reports nothing about containers.
func ended(pod *corev1.Pod) bool {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
	running := func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil }
	return pod.DeletionTimestamp != nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) &&
		len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers) && !slices.ContainsFunc(all, running)
}

// stopped accepts an absent pod as proof only if its node exists and is Ready, or if the user or an
// administrator has declared the node dead: a pod object that was deleted by force proves nothing about its
// containers. Where only their end would show that a volume is free, its grace period must be over, too.
func (v vacancy) stopped(ctx context.Context, m plans.StepContext, flight *plans.Flight, pod *plans.Pod) (plans.Observation, error) {
	name := v.Plan.Pod(m.From, pod.Ordinal)
	switch {
	case pod.Stopped != "":
		return plans.Done(), nil
	case pod.Node == "":
		pod.Stopped = "was never on a node"
		return plans.Done(), nil
	}
	node, err := v.nodeOf(ctx, m.From, pod.Node)
	if err != nil {
		return plans.Observation{}, err
	}
	vouched := slices.Contains(flight.NodesGone, pod.Node)
	switch {
	case node != nil && NodeReady(node) && (pod.NodeUID == "" || node.UID == pod.NodeUID):
		return v.stoppedOn(ctx, m, flight, pod, node, vouched)
	case vouched:
		pod.Stopped = fmt.Sprintf("node %s is permanently gone, as the user has confirmed (--node-gone)", pod.Node)
	case node == nil || pod.NodeUID != "" && node.UID != pod.NodeUID:
		return plans.Stop(reasons.NodeGone, fmt.Sprintf("node %s, where %s ran, no longer exists, so the end of its containers cannot be proven; make sure that the machine is off, and confirm it with --node-gone %s",
			pod.Node, name, pod.Node)), nil
	case outOfService(node):
		pod.Stopped = fmt.Sprintf("node %s is out of service (taint %s)", node.Name, corev1.TaintNodeOutOfService)
	default:
		return plans.Wait(reasons.NodeNotReady, fmt.Sprintf("node %s, where %s ran, is not Ready: its containers may still run; repair the node, or make sure that the machine is off and confirm it: taint the node with %s, or use --node-gone %s",
			node.Name, name, corev1.TaintNodeOutOfService, node.Name)), nil
	}
	return plans.Done(), nil
}

// stoppedOn waits for the end of an absent pod whose node is Ready: its kubelet must no longer use the volumes. Where
// only the end of the containers would show that a volume is free, the word of the user replaces the grace period.
func (v vacancy) stoppedOn(ctx context.Context, m plans.StepContext, flight *plans.Flight, pod *plans.Pod, node *corev1.Node, vouched bool) (plans.Observation, error) {
	if s := unused(node, flight.Of(pod.Ordinal)); s.Standing != plans.After {
		return s, nil
	}
	why := ", and its containers have ended, as the user has confirmed (--node-gone)"
	if !vouched {
		over, err := v.outlived(ctx, m, flight, pod)
		if err != nil || over.Standing != plans.After {
			return over, err
		}
		why = over.Reason
	}
	pod.Stopped = fmt.Sprintf("node %s is Ready%s", node.Name, why)
	return plans.Done(), nil
}

// nodeOf reads a node. It returns nil if there is none.
func (v vacancy) nodeOf(ctx context.Context, side plans.Side, name string) (*corev1.Node, error) {
	return clusters.Get[corev1.Node](ctx, v.On[side], "", name, "the "+string(side))
}

// NodeReady reports whether the node is Ready, so that the reports of its kubelet can be trusted.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// outOfService reports whether an administrator has declared to Kubernetes that a node is off (KEP-2268).
func outOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// unused waits until the kubelet no longer reports the volumes in use. Only CSI volumes have a name here that
// can be derived from their handle.
func unused(node *corev1.Node, volumes []plans.Volume) plans.Observation {
	for _, vol := range volumes {
		for _, used := range node.Status.VolumesInUse {
			if name, ok := strings.CutPrefix(string(used), "kubernetes.io/csi/"); ok && (SameDisk(name, vol.Handle) || strings.HasSuffix(name, "/"+vol.Handle)) {
				return plans.Wait(reasons.VolumeInUse, fmt.Sprintf("volume %s is still in use on node %s", vol.Name, node.Name))
			}
		}
	}
	return plans.Done()
}
