package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// halt ends the run with end if nothing is in flight, and reports whether Advance must return its result.
// A wave that has begun and not left, whatever it waits for, is undone first, so that the budgets
// are open meanwhile.
func (e *Engine) halt(ctx context.Context, step plans.Step, began bool, end func(context.Context, plans.Step) (Progress, error)) (Progress, bool, error) {
	first, begun := e.tightened()
	if !begun && (began || !step.Op.Boundary()) {
		return Progress{}, false, nil
	}
	if away, err := e.away(ctx, step); err != nil || away {
		return Progress{Step: step}, false, err
	}
	if begun {
		waits, err := e.open(ctx, first)
		switch {
		case err != nil:
			return Progress{Step: first}, true, err
		case e.journal == nil:
			return movedOn(first), true, nil
		case waits.Reason != "":
			return Progress{Kind: Waiting, Step: first, ID: waits.ID, Reason: waits.Reason}, true, nil
		}
		step = first
	}
	p, err := end(ctx, step)
	return p, true, err
}

// away reports whether the wave of a reversed plan is on neither side. The journal does not record whether
// the wave had arrived, nor whether it had left.
func (e *Engine) away(ctx context.Context, step plans.Step) (bool, error) {
	if !e.journal.Unsure(step) {
		return false, nil
	}
	w := sets.Steps{Pair: clusters.Pair{Plan: e.plan, On: e.on}}
	var has []plans.Slice
	for _, side := range plans.Sides() {
		set, err := w.Set(ctx, side)
		if err != nil {
			return false, err
		}
		if set != nil {
			has = append(has, plans.SliceOf(set))
		}
	}
	for o := range step.Ordinals.All() {
		there := false
		for _, s := range has {
			there = there || s.Has(o)
		}
		if !there {
			return true, nil
		}
	}
	return false, nil
}

// pause ends the run before a step. It records the finished steps, since no next intent will carry them.
func (e *Engine) pause(ctx context.Context, step plans.Step) (Progress, error) {
	if j := e.journal; j.Done > e.recorded || !j.Paused || !j.Resting || j.LooksOn() {
		if !j.Resting {
			e.record(journal.PlanPaused, "", "before "+e.StepOf(step))
		}
		if j.LooksOn() { // the user decides when it goes on
			j.Unblock()
		}
		j.Paused, j.PauseAt, j.Resting = true, 0, true
		if err := e.save(ctx); err != nil {
			return Progress{Step: step}, writes.IgnoreAnswers(err)
		}
	}
	return Progress{Kind: Paused, Step: step, ID: reasons.Paused, Reason: "paused before " + e.StepOf(step)}, nil
}
