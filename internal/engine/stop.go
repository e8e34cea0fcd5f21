package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A run that is to end finishes the wave in flight first: nothing is down while no process carries the plan on. That is a
// pause which the journal does not ask for, so that the next process goes on without being told to.

// halts ends the run before a step if the plan pauses there, or if this process is to end and nothing is in flight. It
// reports whether Advance must return its result.
func (e *Engine) halts(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	j := e.journal
	if j.Paused || j.PauseDue(step) {
		if p, halts, err := e.halt(ctx, step, began, e.pause); halts || err != nil {
			return p, halts, err
		}
	}
	if !e.finishing {
		return Progress{}, false, nil
	}
	// A step that has begun and moves nothing, such as Freeze, goes on at its next write.
	return e.halt(ctx, step, false, e.end)
}

// end ends the run before a step. It records the finished steps, since no next intent will carry them.
func (e *Engine) end(ctx context.Context, step plans.Step) (Progress, error) {
	e.record(journal.RunStopped, "", "before "+e.StepOf(step)+", with no ordinal in flight")
	if err := e.save(ctx); err != nil {
		return Progress{Step: step}, writes.IgnoreAnswers(err)
	}
	return Progress{Kind: Stopped, Step: step, Reason: "stopped before " + e.StepOf(step) + "; no ordinal is in flight"}, nil
}

// finishes makes the run end as soon as no ordinal is in flight.
func (r *run) finishes() { r.Finish, r.finishing = nil, true }

// cut ends the run after the current write. What it has seen is recorded if that can be done at once: another process
// would find it out again.
func (r *run) cut(ctx context.Context) {
	if r.ease(ctx); r.tight || !r.finishing {
		return // no answers; or another process goes on at once
	}
	if err := r.recordEnd(ctx); err != nil {
		r.Report(r.last, err)
	}
}

// recordEnd records that the run has ended in the middle of a step.
func (e *Engine) recordEnd(ctx context.Context) error {
	if err := e.recall(ctx); err != nil {
		return err
	}
	j := e.journal
	j.Done = max(j.Done, e.passed)
	step, _, more := j.Next(e.plan)
	if j.Epoch != e.epoch || !more {
		return nil
	}
	e.halted()
	e.record(journal.RunStopped, "", "at "+e.StepOf(step))
	return writes.IgnoreAnswers(e.save(ctx))
}

// flies remembers, after each pass, whether ordinals may be in flight: an API server that does not answer must not keep a
// run from ending that has nothing in flight.
func (e *Engine) flies(j *journal.Journal) {
	if j != nil {
		step, _, more := j.Next(e.plan)
		e.flying = more && j.Wave(step).Away
	}
}
