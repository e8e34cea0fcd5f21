package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Ease opens the budgets again that were tightened for a wave which has not left, and gives the sets that were pinned for it
// their own partitions back, so that nodes can be drained, and templates can roll, while the plan is blocked, stopped, or
// waits for others.
//
// With ordinals in flight it does nothing: the budgets then leave what d leaves.
func (e *Engine) Ease(ctx context.Context) error {
	_, err := e.ease(ctx)
	return err
}

func (e *Engine) ease(ctx context.Context) (waits plans.Observation, err error) {
	if err := e.recall(ctx); err != nil {
		return waits, err
	}
	step, tight := e.tightened()
	if !tight {
		return waits, nil
	}
	if away, err := e.away(ctx, step); err != nil || away {
		return waits, err
	}
	return e.open(ctx, step)
}

// open opens the budgets for the wave of a Tighten, and returns what it still waits for; without a Reason it waits for
// nothing. The order must hold:
// the journal goes back to before Tighten FIRST, so that no process scales an ordinal down under open budgets
// (S3), and the process that continues tightens them again. That they are open is written LAST.
func (e *Engine) open(ctx context.Context, step plans.Step) (waits plans.Observation, err error) {
	j := e.journal
	j.Done, e.passed = step.Seq-1, 0
	j.Begun = max(j.Begun, step.Seq) // a Tighten that had nothing to write is not in the journal yet (S10)
	e.void()                         // the wave may go much later
	e.Permit.Release()
	if err := e.save(ctx); err != nil {
		return waits, writes.IgnoreAnswers(err)
	}
	for range 3 * len(plans.Sides()) { // at most one write for each budget, and those of the sets
		e.way.aside.Clear()
		s, err := e.way.look(ctx, e.moment(j, step, true))
		if err != nil || s.Standing == plans.During {
			return s, err
		}
		if s.Standing != plans.Before {
			break // open, or no longer ours, which the next Tighten reports
		}
		if same, err := e.unmoved(ctx); err != nil || !same {
			return waits, err
		}
		if err := s.Write(ctx); writes.IgnoreAnswers(err) != nil {
			return waits, fmt.Errorf("opening the budgets again: %w", err)
		}
	}
	if e.Now == nil || j.TightSince == nil {
		return waits, nil
	}
	j.Loosened(e.Now())
	return waits, writes.IgnoreAnswers(e.save(ctx))
}

// turnedTight reports whether the wave before which a leg began may have left the budgets tight and the sets pinned: a
// plan that is turned takes no Relax of the earlier leg.
func (e *Engine) turnedTight(step plans.Step) bool {
	return step.Seq == e.journal.Leg.First && (e.Now == nil || e.journal.TightSince != nil)
}

// tightened returns the Tighten of a wave that has begun and not left, and reports whether there is one. A wave that was
// to follow at once has left out the Relax before it, so its budgets are tight although it may not be in the journal yet.
func (e *Engine) tightened() (plans.Step, bool) {
	j := e.journal
	j.Done = max(j.Done, e.passed)
	step, began, more := j.Next(e.plan)
	switch {
	case !more || j.Epoch != e.epoch:
		return step, false
	case step.Op.Tightens():
		return step, began || e.skipRelax.follows(step) || e.turnedTight(step)
	case step.Op.Stays(), step.Op.Leaves() && !began:
		for !step.Op.Tightens() {
			step, _ = e.plan.Step(j.Leg, step.Seq-1)
		}
		return step, true
	}
	return step, false
}

// openBudgets opens the budgets while a wave that has not left waits. Without one, they stay tight until the wave has
// arrived, or until the plan is paused or blocked, or the run ends.
type openBudgets struct {
	*memory

	tightened func() (plans.Step, bool)
	open      func(context.Context) (waits plans.Observation, err error)
	done      int  // the Seq of the Tighten that this process has eased, and for which it has written nothing since
	left      bool // that the last attempt within a pass has left something as it was
}

// turn eases where a wave that has not left waits for what ends only then, such as a rolling update that began just
// before its set was pinned. It returns the progress of that, and whether there is any.
func (e *openBudgets) turn(ctx context.Context, step plans.Step, observed plans.Observation) (Progress, bool, error) {
	if e == nil {
		return Progress{}, false, nil
	}
	if _, tight := e.tightened(); !observed.Eases || !tight || e.done == step.Seq {
		return Progress{}, false, nil // or it is eased, and still waits
	}
	waits, err := e.open(ctx)
	again := observed.Again // what keeps it from being eased may last, and each attempt writes the journal
	if e.left = err != nil || waits.Reason != "" || e.journal == nil; !e.left {
		e.done, again = step.Seq, time.Millisecond
	}
	return Progress{Kind: Waiting, Step: step, ID: observed.ID, Reason: observed.Reason, Again: again}, true, err
}

// wrote takes notice of a write of a step.
func (e *openBudgets) wrote() {
	if e != nil {
		e.done = 0
	}
}

// settled takes notice that nothing is left as it was.
func (e *openBudgets) settled() {
	if e != nil {
		e.left = false
	}
}
