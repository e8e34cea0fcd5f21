package sets

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// tally counts the ordinals of a side by whether they serve.
type tally struct {
	// serving is how many pods of the wave are Ready. down has the reason for each other
	// ordinal that is not available.
	serving int32
	down    []string
	// early is how many pods are Ready and not available yet (minReadySeconds). The set controller
	// reports only their number, and no clock of ours is compared with a node's. So they are
	// assumed to be outside the wave.
	early int32
}

func count(ctx context.Context, w clusters.Pair, side plans.Side, set *appsv1.StatefulSet, wave plans.Slice) (tally, error) {
	pods, err := w.Pods(ctx, side, set)
	if err != nil {
		return tally{}, err
	}
	var t tally
	slice, up := plans.SliceOf(set), int32(0)
	for o := range w.Plan.Ordinals().All() { // a person may have mistyped the set's own range
		if !slice.Has(o) {
			continue
		}
		why := Ready(pods[w.Plan.Pod(side, o)])
		if why == "" {
			up++
		}
		switch {
		case wave.Has(o) && why == "":
			t.serving++
		case !wave.Has(o) && why != "":
			t.down = append(t.down, fmt.Sprintf("pod %s of %s %s", w.Plan.Pod(side, o), w.Plan.On(side), why))
		}
	}
	if set.Spec.MinReadySeconds > 0 {
		t.early = max(up-set.Status.AvailableReplicas, 0)
	}
	for range t.early {
		t.down = append(t.down, fmt.Sprintf("%s has %d available pods of %d that are Ready (minReadySeconds %d)", w.Plan.On(side), set.Status.AvailableReplicas, up, set.Spec.MinReadySeconds))
	}
	return t, nil
}

// downs are how many ordinals are not available: those outside the wave, and those of the wave.
type downs struct{ others, wave int32 }

// mayGo returns a wait if the wave must not be scaled down now, else After (S2), and the ordinals that are down.
//
// In a move every other ordinal must be available. In an abort the ordinals that are down are counted:
// a broken side is what users abort from. An ordinal that is down already costs nothing, so a wave of
// such ordinals may always go.
func (w Steps) mayGo(ctx context.Context, m plans.StepContext, from, to *appsv1.StatefulSet) (d downs, s plans.Observation, err error) {
	here, err := count(ctx, w.Pair, m.From, from, m.Ordinals)
	if err != nil {
		return d, s, err
	}
	there, err := count(ctx, w.Pair, m.To(), to, m.Ordinals)
	if err != nil {
		return d, s, err
	}
	if s := w.unsettled(m, from, to, here); s != nil {
		return d, *s, nil
	}
	if m.Unfit != nil && here.serving > 0 {
		return d, plans.Stop(reasons.ChecksFailed, m.Unfit.Why), m.Unfit.Err
	}
	if s, err := comparisonOf(w).alike(ctx, m, from, to, here.serving > 0); err != nil || s.Standing != plans.After {
		s.Eases = true // until the user has made them alike, which may take long
		return d, s, err
	}
	down := append(here.down, there.down...)
	others := int32(len(down)) //nolint:gosec // pods of one set
	d = downs{others, m.Ordinals.Replicas - here.serving}
	switch {
	case others == 0:
		return d, plans.Done(), nil
	case m.From != plans.Destination && (!m.Unsure() || here.serving > 0): // one that was turned and is down has nothing to lose
		return d, plans.Wait(reasons.OrdinalDown, down[0]+"; no ordinal is scaled down until it is available"), nil
	case here.serving == 0, others+m.Ordinals.Replicas <= m.Allowed:
		return d, plans.Done(), nil
	}
	return d, plans.Wait(reasons.OrdinalDown, fmt.Sprintf("%s; with %s %d ordinals would be unavailable, and at most %d may be: no ordinal is scaled down until it is available, or until the user allows more with --max-unavailable %d",
		down[0], w.Plan.Pods(m.Ordinals), others+m.Ordinals.Replicas, m.Allowed, others+m.Ordinals.Replicas)), nil
}

// unsettled returns the wait of the wave for one of the two sets, or nil. In an abort the set that it leaves may be
// unsettled where no pod of the wave serves. Its status must be current for that. A rolling update that had begun before
// its set was pinned ends only when it is pinned no more.
func (w Steps) unsettled(m plans.StepContext, from, to *appsv1.StatefulSet, here tally) *plans.Observation {
	back := m.From == plans.Destination
	why, set := w.rolls(m, m.From, from), from
	if why == "" || back && here.serving == 0 && !unseen(from) {
		why, set = w.rolls(m, m.To(), to), to
	}
	if why == "" {
		return nil
	}
	wait := plans.Wait(reasons.SetUnsettled, why)
	switch _, pinned := set.Annotations[plans.PinnedAnnotation]; {
	case unseen(set):
		wait.ID = reasons.SetNotObserved
	case pinned:
		wait.Eases = true
	}
	return &wait
}

// rolls returns why a set is unsettled, or "". Once it is recorded that the wave leaves, the sets stay pinned, and an update
// that is pinned rolls nothing: to wait for its end would be to wait for ever.
func (w Steps) rolls(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet) string {
	if m.Op == plans.Shrink && m.Began && !unseen(set) && plans.Others(set, m.Ordinals) && plans.Pinned(set) {
		return ""
	}
	return Unsettled(w.Plan, side, set)
}

// Unavailable returns the reason why some ordinal of a side is not available, or "". Ordinals that were added on the
// destination are not the plan's, and are not counted.
func Unavailable(ctx context.Context, w clusters.Pair, side plans.Side, set *appsv1.StatefulSet) (string, error) {
	t, err := count(ctx, w, side, set, plans.Slice{})
	if err != nil || len(t.down) == 0 {
		return "", err
	}
	return t.down[0] + "; no ordinal is scaled down until it is available", nil
}

// displaced stops before a wave leaves where a set has ordinals that are not its own (S7): the budgets are for the
// ordinals of the plan, and would allow too much. Where ordinals are missing the budgets are tightened all the same,
// which protects those that are left, and Shrink stops. A wave that has left, or was reversed on its way, is for the
// steps that know where it is.
func (w Steps) displaced(m plans.StepContext, from, to *appsv1.StatefulSet) *plans.Observation {
	if m.Unsure() || m.InFlight() {
		return nil
	}
	for _, s := range []struct {
		side plans.Side
		set  *appsv1.StatefulSet
		has  bool
	}{{m.From, from, true}, {m.To(), to, false}} {
		if s.set == nil || !m.Stamp.Mine(s.set) {
			continue
		}
		own := w.Plan.Slice(s.side, m.Ordinals, s.has)
		for o := range plans.SliceOf(s.set).All() {
			if !own.Has(o) {
				stop := rangesOf(w.Pair).strange(s.side, s.set, own.String())
				return &stop
			}
		}
	}
	return nil
}

// Steadily tightens the budgets only when the wave may go and its volumes can be handed over: Shrink checks the same,
// and budgets that allow nothing must not wait for it. A snapshot of a claim may take hours. The budgets leave out the ordinals
// that are down already. The sets are pinned BEFORE the budgets are tightened: what follows waits for their controllers.
func (w Steps) Steadily(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	from, to, err := w.both(ctx, m)
	if err != nil {
		return plans.Observation{}, err
	}
	here := from != nil && plans.SliceOf(from) == w.Plan.Slice(m.From, m.Ordinals, true)
	if here && to != nil && plans.SliceOf(to) == w.Plan.Slice(m.To(), m.Ordinals, false) {
		var s plans.Observation
		var down downs
		if down, s, err = w.mayGo(ctx, m, from, to); err != nil || s.Standing != plans.After {
			return s, err
		}
		m.Down = down.others
		if w.keeps(m, from, to) == nil { // else Shrink stops, which must not wait
			if s, err = w.unready(ctx, m); err != nil || s.Standing == plans.During {
				return s, err
			}
		}
	} else if stop := rangesOf(w.Pair).added(m, from); stop != nil && !m.Unsure() {
		return *stop, nil
	} else if stop := w.displaced(m, from, to); stop != nil {
		return *stop, nil
	}
	if s := pinningOf(w.Pair).pin(m, map[plans.Side]*appsv1.StatefulSet{m.From: from, m.To(): to}); s.Standing != plans.After {
		return s, nil
	}
	return w.Tighten(ctx, m)
}

// both returns the set that the ordinals leave, and the one that receives them.
func (w Steps) both(ctx context.Context, m plans.StepContext) (from, to *appsv1.StatefulSet, err error) {
	if from, err = w.Set(ctx, m.From); err != nil {
		return nil, nil, err
	}
	to, err = w.Set(ctx, m.To())
	return from, to, err
}
