package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// prepares reports whether a step prepares the departure of a wave.
func prepares(step plans.Step) bool {
	return step.Op.Stays()
}

// aged asks again, before a wave leaves, what was answered too long ago, or before an ordinal became unavailable. It
// returns the progress of that, and whether there is any. The plan goes back to the step that asks, unless the departure is
// recorded: the write of that intent may arrive late, and the budgets must not be opened then. The roll is also called while
// the wave waits to leave: when it may go, a pod that is back does not always say that it was away, as it knows no more than
// the second.
func (e *Engine) aged(ctx context.Context, step plans.Step, observed plans.Observation) (Progress, bool, error) {
	stays := step.Op.Leaves() && (observed.Standing == plans.Before || observed.Standing == plans.During)
	if !stays && !prepares(step) || e.CheckWave == nil && len(e.plan.Gates) == 0 {
		return Progress{}, false, nil // nothing is asked before a wave
	}
	leaves := stays && observed.Standing == plans.Before
	gone, err := e.observer.roll.Call(ctx, e.observer.world.Pair, step.Ordinals)
	if err != nil {
		return Progress{Step: step}, true, err
	}
	if gone != "" {
		e.observer.void()
		if !step.Op.Tightens() && (leaves || !stays) {
			why := gone + " meanwhile: what was answered before that does not count, and is asked again"
			return Progress{Kind: Waiting, Step: step, ID: reasons.OrdinalDown, Reason: why, Again: time.Millisecond}, true, nil
		}
	}
	quiesce, _ := e.plan.Step(e.journal.Leg, step.Seq-1)
	if !leaves || quiesce.Op.Gate() != plans.BeforeShrink {
		return Progress{}, false, nil
	}
	return e.asksAgain(ctx, step, quiesce)
}

// asksAgain goes back to the gates before a wave that leaves, unless all of them still count.
func (e *Engine) asksAgain(ctx context.Context, step, quiesce plans.Step) (Progress, bool, error) {
	began := quiesce.Seq <= e.journal.Begun
	still, err := e.Gates.Still(ctx, e.observer.moment(e.journal, quiesce, began))
	if err != nil || still.Standing == plans.After {
		return Progress{Step: quiesce}, err != nil, err
	}
	e.retainPermit(quiesce, still, nil)
	if step.Seq > e.journal.Begun {
		e.journal.Done, e.passed = quiesce.Seq-1, quiesce.Seq-1
	}
	p, err := e.act(ctx, quiesce, began, still)
	return p, true, err
}
