package placeholder

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Anchors remembers what has become of anchors. It is of one process: the next one tries once more. With nil none are made.
type Anchors struct {
	lock  sync.Mutex
	no    map[plans.Side]bool
	since map[string]time.Time
}

// speaks is how long a scheduler or a controller that says nothing of a pod is waited for, where the wait is for an anchor.
const speaks = 10 * time.Second

// refused reports whether no more are made on a side.
func (a *Anchors) refused(side plans.Side) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.no[side]
}

func (a *Anchors) refuse(side plans.Side) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.no == nil {
		a.no = map[plans.Side]bool{}
	}
	a.no[side] = true
}

// silent reports whether nothing has been heard for too long of something that was asked for since before now.
func (a *Anchors) silent(what string, now time.Time) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.since == nil {
		a.since = map[string]time.Time{}
	}
	if _, known := a.since[what]; !known {
		a.since[what] = now
	}
	return now.Sub(a.since[what]) > speaks
}

// now is the time, or zero where no clock is known.
func (s Steps) now() (at time.Time) {
	if s.Now != nil {
		at = s.Now()
	}
	return at
}

// anchor looks at the anchor of a place that is proven. It is After when the ordinal need not wait for it, and there reports
// whether it is on the node of the place.
func (s Steps) anchor(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32, place *corev1.Pod) (out plans.Observation, there bool, err error) {
	if !s.Plan.Placeholder.Anchored() || s.Anchors == nil {
		return plans.Done(), false, nil
	}
	side, name := m.To(), plans.Anchor(s.Plan, m.To(), ordinal)
	ref := s.Plan.On(side)
	pod, err := clusters.Get[corev1.Pod](ctx, s.On[side], ref.Namespace, name, ref.String())
	switch {
	case err != nil:
		return out, false, err
	case pod == nil && s.Anchors.refused(side):
		return plans.Done(), false, nil
	case pod == nil:
		out, err = s.drop(m, set, ordinal, place)
		return out, false, err
	case !usable(pod, m.Stamp):
		return plans.Done(), false, nil // the ordinal goes without it
	}
	h := holds(pod, place.Spec.NodeName)
	if h.no == "" && !h.there && s.Anchors.silent(string(pod.UID), s.now()) {
		h.no = "since no scheduler has said anything of it"
	}
	switch {
	case h.no != "":
		if !h.again {
			s.Anchors.refuse(side)
		}
		return s.remove(side, pod, h.no), false, nil
	case h.there:
		return plans.Done(), true, nil
	}
	wait := plans.Wait(reasons.PlaceNotReady, fmt.Sprintf("anchor %s of %s has no node yet; it goes to %s, where the place of %s is ready", name, ref, place.Spec.NodeName, s.Plan.Pod(side, ordinal))).Idly()
	wait.Again = speaks
	return wait, false, nil
}

// usable reports whether an anchor is that of this plan, and stays.
func usable(pod *corev1.Pod, stamp plans.Stamp) bool {
	return stamp.Mine(pod) && stamp.Barred(pod) == "" && pod.Labels[AnchorLabel] != "" && pod.DeletionTimestamp == nil && estranged(pod) == ""
}

// drop returns the write of an anchor. What refuses it is remembered, and is no error.
func (s Steps) drop(m plans.StepContext, set *appsv1.StatefulSet, ordinal int32, place *corev1.Pod) (plans.Observation, error) {
	side := m.To()
	p := of(s.Plan, side, set, ordinal)
	p.Owner = clusters.OwnerOf(s.Plan.On(side), set)
	pod, err := Anchor(s.sparing(side, p), plans.Anchor(s.Plan, side, ordinal), place)
	if err != nil || pod == nil {
		return plans.Done(), err
	}
	m.Stamp.Put(pod)
	return plans.Write(fmt.Sprintf("%s: make anchor %s, which draws %s to %s", side, pod.Name, s.Plan.Pod(side, ordinal), place.Spec.NodeName), plans.Undo{}, func(ctx context.Context) error {
		err := s.On[side].Create(ctx, pod)
		if apierrors.ReasonForError(err) != "" && !apierrors.IsAlreadyExists(err) {
			s.Anchors.refuse(side)
			return nil
		}
		if err != nil {
			return err
		}
		return s.late(ctx, side, pod)
	}), nil
}

// late takes a pod away again that was made by a process that does not have the plan any more: the process that has it now may
// be at its end.
func (s Steps) late(ctx context.Context, side plans.Side, pod *corev1.Pod) error {
	if s.Overtaken != nil && s.Overtaken(ctx) {
		return writes.DeletePlaceholder(ctx, s.On[side], pod, Label)
	}
	return nil
}
