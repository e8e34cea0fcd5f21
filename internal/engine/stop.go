package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A run that is to end finishes the wave in flight first: nothing is down while no process carries the plan on. That is a
// pause which the journal does not ask for, so that the next process goes on without being told to.

// stopping ends a run where the plan pauses, or where this process is to end.
type stopping struct {
	*memory

	easing *easing
}

// turn ends the run before a step if the plan pauses there, or if this process is to end and nothing is in flight. It
// reports whether Advance must return its result.
func (st *stopping) turn(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	j := st.journal
	if j.Paused || j.PauseDue(step) {
		if p, halts, err := st.halt(ctx, step, began, st.pause); halts || err != nil {
			return p, halts, err
		}
	}
	if !st.finishing {
		return Progress{}, false, nil
	}
	// A step that has begun and moves nothing, such as Freeze, goes on at its next write.
	return st.halt(ctx, step, false, st.end)
}

// halt ends the run with end if nothing is in flight, and reports whether Advance must return its result.
// A wave that has begun and not left, whatever it waits for, is undone first, so that the budgets
// are open meanwhile.
func (st *stopping) halt(ctx context.Context, step plans.Step, began bool, end func(context.Context, plans.Step) (Progress, error)) (Progress, bool, error) {
	first, begun := st.easing.tightened()
	if !begun && (began || !step.Op.Boundary()) {
		return Progress{}, false, nil
	}
	if away, err := st.easing.away(ctx, step); err != nil || away {
		return Progress{Step: step}, false, err
	}
	if begun {
		waits, err := st.easing.open(ctx, first)
		switch {
		case err != nil:
			return Progress{Step: first}, true, err
		case st.journal == nil:
			return movedOn(first), true, nil
		case waits.Reason != "":
			return Progress{Kind: Waiting, Step: first, ID: waits.ID, Reason: waits.Reason}, true, nil
		}
		step = first
	}
	if err := st.easing.unplace(ctx); err != nil {
		return Progress{Step: step}, true, err
	}
	p, err := end(ctx, step)
	return p, true, err
}

// pause ends the run before a step. It records the finished steps, since no next intent will carry them.
func (st *stopping) pause(ctx context.Context, step plans.Step) (Progress, error) {
	if j := st.journal; j.Done > st.recorded || !j.Paused || !j.Resting || j.LooksOn() {
		if !j.Resting {
			st.record(journal.PlanPaused, "", "before "+st.StepOf(step))
		}
		if j.LooksOn() { // the user decides when it goes on
			j.Unblock()
		}
		j.Paused, j.PauseAt, j.Resting = true, 0, true
		if err := st.save(ctx); err != nil {
			return Progress{Step: step}, writes.IgnoreAnswers(err)
		}
	}
	return Progress{Kind: Paused, Step: step, ID: reasons.Paused, Reason: "paused before " + st.StepOf(step)}, nil
}

// end ends the run before a step. It records the finished steps, since no next intent will carry them.
func (st *stopping) end(ctx context.Context, step plans.Step) (Progress, error) {
	st.record(journal.RunStopped, "", "before "+st.StepOf(step)+", with no ordinal in flight")
	if err := st.save(ctx); err != nil {
		return Progress{Step: step}, writes.IgnoreAnswers(err)
	}
	return Progress{Kind: Stopped, Step: step, Reason: "stopped before " + st.StepOf(step) + "; no ordinal is in flight"}, nil
}

// finishes makes the run end as soon as no ordinal is in flight.
func (r *run) finishes() { r.Finish, r.finishing = nil, true }

// cut ends the run after the current write. What it has seen is recorded if that can be done at once: another process
// would find it out again.
func (r *run) cut(ctx context.Context) {
	if r.ease(ctx); r.tight || !r.finishing {
		return // no answers; or another process goes on at once
	}
	if err := r.stopping.recordEnd(ctx); err != nil {
		r.Report(r.last, err)
	}
}

// recordEnd records that the run has ended in the middle of a step.
func (st *stopping) recordEnd(ctx context.Context) error {
	if err := st.recall(ctx); err != nil {
		return err
	}
	j := st.journal
	j.Done = max(j.Done, st.passed)
	step, _, more := j.Next(st.plan)
	if j.Epoch != st.epoch || !more {
		return nil
	}
	st.halted()
	st.record(journal.RunStopped, "", "at "+st.StepOf(step))
	return writes.IgnoreAnswers(st.save(ctx))
}
