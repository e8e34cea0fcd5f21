package sets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// guarded reads a set that this plan may write, or returns an observation that states why the plan may not. A
// set that the user has vouched for is taken back into the plan first.
func (w ranges) guarded(ctx context.Context, m plans.StepContext, side plans.Side) (*appsv1.StatefulSet, *plans.Observation, error) {
	set, err := w.Set(ctx, side)
	if err != nil {
		return nil, nil, err
	}
	var s plans.Observation
	name := w.Plan.On(side).Set()
	switch {
	case set != nil && m.Stamp.Barred(set) != "":
		s = plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("%s %s", name, m.Stamp.Barred(set)))
	case set != nil && set.DeletionTimestamp != nil:
		s = plans.Stop(reasons.SetDeleted, fmt.Sprintf("%s is being deleted by another writer; when it is gone, recreate it as it was, and pass --readopt", name))
	case set != nil && m.Stamp.Mine(set) && (side == plans.Destination || set.UID == m.Saved.Source(w.Plan)):
		return set, nil, nil
	case m.Readopt:
		s, err = w.readopt(ctx, m, side, set)
	case set == nil:
		s = plans.Stop(reasons.SetDeleted, fmt.Sprintf("%s does not exist; its pods and volumes are not touched; recreate it as it was, with the ordinals %s, and pass --readopt", name, w.expects(m, side)))
	case side == plans.Source && set.UID != m.Saved.Source(w.Plan):
		s = plans.Stop(reasons.SetMarkLost, fmt.Sprintf("%s was deleted and recreated (UID %s, expected %s); if its spec is unchanged, pass --readopt", name, set.UID, m.Saved.Source(w.Plan)))
	default:
		s = plans.Stop(reasons.SetMarkLost, fmt.Sprintf("%s no longer carries the mark of this plan: it was recreated, or another writer replaced its annotations; if its spec is unchanged, pass --readopt", name))
	}
	return nil, &s, err
}

// expects returns the range that a set must have when a step begins, as far as the journal knows it.
// For a wave that was reversed the journal does not know it; then it is the range without the
// ordinals, which starts nothing.
func (w ranges) expects(m plans.StepContext, side plans.Side) plans.Slice {
	switch {
	case !m.Whole():
		left := m.Unsure() || m.Op != plans.Shrink || m.Began && m.InFlight()
		return w.Plan.Slice(side, m.Ordinals, side == m.From && !left)
	case side == m.To():
		return w.Plan.Ordinals()
	}
	return plans.Slice{Start: w.Plan.End()}
}

// readopt takes a set back into the plan that lost its mark, or was recreated: it must be what it was, and
// have the ordinals that it had. A destination set that does not exist is recreated from the source.
func (w ranges) readopt(ctx context.Context, m plans.StepContext, side plans.Side, set *appsv1.StatefulSet) (plans.Observation, error) {
	name, slice := w.Plan.On(side).Set(), w.expects(m, side)
	other, err := w.Set(ctx, side.Other())
	if err != nil {
		return plans.Observation{}, err
	}
	if set == nil {
		return w.remake(m, side, other, slice), nil
	}
	have := plans.SliceOf(set)
	if (m.Unsure() || m.Began && (m.Op == plans.Grow && side == m.To() || m.Op == plans.Shrink && side == m.From)) && have == w.Plan.Slice(side, m.Ordinals, true) {
		slice = have // the write of the step may have happened, or not
	}
	if have != slice && have.Replicas+slice.Replicas > 0 {
		return plans.Stop(reasons.OrdinalsChanged, fmt.Sprintf("%s has the ordinals %s (start %d), expected %s (start %d): it cannot be taken back into the plan like that; set them back", name, have, have.Start, slice, slice.Start)), nil
	}
	if why, err := w.another(m, side, set, other); err != nil || why != "" {
		return plans.Stop(reasons.SetDiffers, fmt.Sprintf("%s is not what it was: %s; make it as it was", name, why)), err
	}
	next := set.DeepCopy()
	next.Spec.PersistentVolumeClaimRetentionPolicy = retain()
	earlier(m.Stamp).Put(next)
	plans.MarkSet(next, w.Plan, side, m.Direction(), m.Saved)
	pinLike(other, next)
	var undo plans.Undo
	if side == plans.Source {
		undo.Saved.SourceUID = set.UID
	}
	return plans.Write(fmt.Sprintf("%s: StatefulSet %s: taken back into the plan, as the user has confirmed (UID %s)", side, set.Name, set.UID),
		undo, func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) }), nil
}

// remake returns the write that recreates a set from the other one. Only the destination set can be
// recreated: the source's spec exists nowhere but in the source.
func (w ranges) remake(m plans.StepContext, side plans.Side, other *appsv1.StatefulSet, slice plans.Slice) plans.Observation {
	if side == plans.Source || other == nil {
		return plans.Stop(reasons.SetDeleted, fmt.Sprintf("%s does not exist; recreate it as it was, with the ordinals %s", w.Plan.On(side).Set(), slice))
	}
	why, err := w.outdated(other, m.Saved)
	if err == nil && why != "" {
		return plans.Stop(reasons.SetDeleted, fmt.Sprintf("%s does not exist, and is not recreated: %s; recreate it, with the ordinals %s and what the source has now", w.Plan.On(side).Set(), why, slice))
	}
	next, err2 := DestinationSet(other, w.Plan)
	if err = errors.Join(err, err2); err != nil {
		return plans.Stop(reasons.PlanOutdated, err.Error())
	}
	next.Spec.Replicas, next.Spec.Ordinals.Start = &slice.Replicas, slice.Start
	earlier(m.Stamp).Put(next)
	plans.MarkSet(next, w.Plan, side, m.Direction(), m.Saved)
	pinLike(other, next)
	return plans.Write(fmt.Sprintf("%s: create StatefulSet %s again, with the ordinals %s", side, next.Name, slice), plans.Undo{},
		func(ctx context.Context) error {
			return writes.Copy(ctx, w.On[plans.Source], other, w.On[side], next)
		})
}

// pinLike pins a set that comes back to the plan while a wave is away: the other set is pinned then.
func pinLike(other, next *appsv1.StatefulSet) {
	if plans.PinLost(next) { // recreated as it was in the middle of a wave
		plans.Note(next, other)
		return
	}
	if other == nil || plans.Pinned(next) {
		return
	}
	if _, pinned := other.Annotations[plans.PinnedAnnotation]; pinned && plans.Pinned(other) {
		plans.Pin(next)
	}
}

// earlier returns a stamp of the step before: the stamp of the step itself would mean that its own
// write has been made (written).
func earlier(s plans.Stamp) plans.Stamp {
	s.Seq--
	return s
}

// another describes how a set differs from the one that the plan knows, or returns "". A source that only
// lost its mark is the same.
func (w ranges) another(m plans.StepContext, side plans.Side, set, other *appsv1.StatefulSet) (string, error) {
	if side == plans.Source {
		if set.UID == m.Saved.Source(w.Plan) {
			return "", nil
		}
		same, err := w.Plan.Seen.SameSource(set, w.Plan, m.Saved)
		if err != nil || same {
			return "", err
		}
		return "its spec differs from the one that the plan was made for", nil
	}
	if other == nil {
		return "", nil // nothing to compare with
	}
	want, err := DestinationSet(other, w.Plan)
	if err != nil {
		return "", err
	}
	if fields := Differing(set, want); len(fields) > 0 {
		return "spec." + strings.Join(fields, ", spec.") + " differs from the source's", nil
	}
	return "", nil
}

// Differing lists the fields in which two sets differ and which decide what their pods are.
func Differing(a, b *appsv1.StatefulSet) []string {
	var out []string
	add := func(field string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			out = append(out, field)
		}
	}
	add("selector", a.Spec.Selector, b.Spec.Selector)
	add("serviceName", a.Spec.ServiceName, b.Spec.ServiceName)
	add("podManagementPolicy", a.Spec.PodManagementPolicy, b.Spec.PodManagementPolicy)
	add("template", a.Spec.Template, b.Spec.Template)
	add("minReadySeconds", a.Spec.MinReadySeconds, b.Spec.MinReadySeconds)
	add("volumeClaimTemplates", templates(a), templates(b))
	return out
}

func templates(set *appsv1.StatefulSet) map[string]corev1.PersistentVolumeClaimSpec {
	out := map[string]corev1.PersistentVolumeClaimSpec{}
	for _, t := range set.Spec.VolumeClaimTemplates {
		out[t.Name] = t.Spec
	}
	return out
}
