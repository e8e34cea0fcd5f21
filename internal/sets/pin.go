package sets

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Between Tighten and Relax no other writer may take an ordinal down: the budgets refuse evictions, and both sets are pinned, so
// that no new pod template begins to roll (S2).

// pinning pins the rolling updates of both sets while a wave may be away.
type pinning struct{ clusters.Pair }

func pinningOf(w clusters.Pair) pinning { return pinning{w} }

// pin pins the rolling updates of both sets. It is finished when both are pinned. That their controllers have seen it is
// asked before the wave leaves, by mayGo: one that acts on an older spec may still take a pod down.
func (w pinning) pin(m plans.StepContext, sets map[plans.Side]*appsv1.StatefulSet) plans.Observation {
	var parts []plans.Observation
	for _, side := range []plans.Side{m.From, m.To()} {
		set := sets[side]
		if set == nil || set.DeletionTimestamp != nil || !m.Stamp.Mine(set) || !plans.Others(set, m.Ordinals) || plans.Pinned(set) {
			continue // Shrink reports what is not the plan's
		}
		if m.Op.Tightens() && m.Unsure() && plans.PinChanged(set) {
			continue // the wave may be away, and comes back first; if it has not left, Shrink stops
		}
		if s := w.interfered(m, side, set); s != nil {
			parts = append(parts, *s)
			continue
		}
		next := set.DeepCopy()
		plans.Pin(next)
		m.Stamp.Put(next)
		parts = append(parts, plans.Write(fmt.Sprintf("%s: StatefulSet %s: pin its rolling updates while %s may be away (partition %d)", side, set.Name, w.Plan.Pods(m.Ordinals), plans.AboveAll),
			plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) }))
	}
	return plans.Together(parts)
}

// interfered stops at a set whose partition, or mark, another writer has changed while it was pinned, or returns nil.
func (w pinning) interfered(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet) *plans.Observation {
	name, by := w.Plan.On(side).Set(), plans.Writer(set, "spec", "updateStrategy")
	var stop plans.Observation
	switch {
	case m.Stamp.Barred(set) != "":
		stop = plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("%s %s", name, m.Stamp.Barred(set)))
	case plans.PinChanged(set):
		stop = plans.Stop(reasons.PartitionChanged, fmt.Sprintf("%s was pinned for the time of a wave (partition %d), and its updateStrategy was changed meanwhile by %s: no ordinal leaves while a rolling update may take others down; what that writer has set stays; keep it from changing the field, and run `resume`",
			name, plans.AboveAll, by))
	default:
		return nil
	}
	return &stop
}

// unpinned looks once more, before a wave leaves, whether a rolling update could begin beside it. The sets are pinned again by
// Tighten, unless it is recorded that the wave leaves: there is no way back to Tighten then.
func (w pinning) unpinned(m plans.StepContext, from, to *appsv1.StatefulSet) plans.Observation {
	m.Stamp = earlier(m.Stamp)
	s := w.pin(m, map[plans.Side]*appsv1.StatefulSet{m.From: from, m.To(): to})
	if s.Standing != plans.Before || m.Began {
		return s
	}
	wait := plans.Wait(reasons.SetNotPinned, fmt.Sprintf("a rolling update could begin beside %s, as the sets are not pinned: they are pinned again before it leaves", w.Plan.Pods(m.Ordinals)))
	wait.Eases = true
	return wait
}

// Unpin gives both sets their own partitions back. Nothing is in flight then, or the end of the plan is near.
func Unpin(p *plans.Plan, on clusters.Clusters) plans.Look {
	w := pinningOf(clusters.Pair{Plan: p, On: on})
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		var parts []plans.Observation
		for _, side := range []plans.Side{m.From, m.To()} {
			set, err := w.Set(ctx, side)
			if err != nil {
				return plans.Observation{}, err
			}
			if set == nil || set.DeletionTimestamp != nil || !m.Stamp.Mine(set) {
				continue
			}
			if s := w.unpin(m, side, set); s != nil {
				parts = append(parts, *s)
			}
		}
		return plans.Together(parts), nil
	}
}

// unpin returns what is due for one set that is pinned, or nil. A value that another writer has given it meanwhile stays.
func (w pinning) unpin(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet) *plans.Observation {
	_, noted := set.Annotations[plans.PinnedAnnotation]
	if !noted && !plans.PinLost(set) {
		return nil
	}
	if s := w.interfered(m, side, set); s != nil && !plans.PinChanged(set) {
		return s
	}
	next := set.DeepCopy()
	if err := plans.Unpin(next); err != nil {
		stop := plans.Stop(reasons.PartitionChanged, fmt.Sprintf("%s: %v", w.Plan.On(side).Set(), err))
		return &stop
	}
	what := "rolling updates go on, partition as before"
	if plans.PinChanged(set) {
		what = fmt.Sprintf("rolling updates go on, with the updateStrategy that %s has set while they were pinned", plans.Writer(set, "spec", "updateStrategy"))
	}
	m.Stamp.Put(next)
	s := plans.Write(fmt.Sprintf("%s: StatefulSet %s: %s", side, set.Name, what), plans.Undo{},
		func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) })
	return &s
}
