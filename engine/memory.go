package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

// What an engine knows of the journal between two writes of it, and what it notes meanwhile.

// note is what is to be told of a wave, in the words of the journal, from the step of that number
// on. It is written together with the next intent, and nothing rests on it.
type note struct {
	seq int
	put func(*plans.Journal)
}

// note puts a note into the journal as it is known, and once more into one that is read again
// before it was written.
func (e *Engine) note(step plans.Step, put func(*plans.Journal)) {
	put(e.journal)
	e.notes = append(e.notes, note{step.Seq, put})
}

// clock keeps the stopwatch of the wave under way.
func (e *Engine) clock(step plans.Step, observed plans.Observation) {
	if e.Now == nil {
		return
	}
	span := observed.Span
	switch step.Op {
	case plans.Shrink:
		if observed.Standing == plans.Before { // the write begins it: no note, as it may not come to that
			e.journal.Enter(plans.Terminating, e.Now())
		}
		return
	case plans.Release, plans.Reserve, plans.Claim:
		span = plans.HandingOver
	case plans.Grow:
		if span == "" {
			span = plans.Attaching
		}
	case plans.Vacate:
	default:
		return
	}
	if w := e.journal.Stopwatch; span != "" && w != nil && w.Span != span {
		now := e.Now()
		e.note(step, func(j *plans.Journal) { j.Enter(span, now) })
	}
}

// recall reads the journal unless it is known. What was noted since it was last written is
// noted once more, unless it was written after all.
func (e *Engine) recall(ctx context.Context) (err error) {
	if e.journal != nil {
		return nil
	}
	if e.journal, e.version, err = e.store.Journal(ctx, e.plan); err != nil {
		return err
	}
	e.recorded = e.journal.Done
	for _, n := range e.notes {
		if n.seq > e.recorded && e.journal.Epoch == e.epoch {
			n.put(e.journal)
		}
	}
	return nil
}

// save writes the journal. Whatever the answer, a journal that was not surely
// written is read again.
func (e *Engine) save(ctx context.Context) error {
	version, err := e.store.Save(ctx, e.journal, e.version)
	e.answered = err
	if err != nil {
		e.journal = nil
		return err
	}
	e.version, e.recorded, e.notes = version, e.journal.Done, nil
	return nil
}

// unmoved reads whether the journal is still the one that is known.
func (e *Engine) unmoved(ctx context.Context) (bool, error) {
	_, now, err := e.store.Journal(ctx, e.plan)
	if err != nil || now != e.version {
		e.journal = nil
	}
	return now == e.version, err
}

// rest waits. Between two waves it writes down first that the last one is over: who reads the
// journal meanwhile would see it still under way, and its budgets tight.
func (e *Engine) rest(ctx context.Context, p Progress) (Progress, error) {
	if !begins(e.journal, p.Step) || e.journal.Done <= e.recorded {
		return p, nil
	}
	err := e.save(ctx)
	switch {
	case err == nil:
		return p, nil
	case writes.IgnoreAnswers(err) == nil:
		return movedOn(p.Step), nil
	}
	return Progress{Step: p.Step}, err
}

// learn waits for what a look waits for, and keeps what it has proven and will not be able to prove again. Before a wait for a node or a
// disk, which may outlive the node, that is written down; while a pod ends, the next write carries it.
func (e *Engine) learn(ctx context.Context, step plans.Step, observed plans.Observation) (Progress, error) {
	if proven := observed.Undo.Flight; proven != nil && !e.journal.Recorded(observed.Undo) {
		e.note(step, func(j *plans.Journal) { j.Flight = proven })
		if observed.Span == plans.Detaching {
			switch err := e.save(ctx); {
			case err == nil:
			case writes.IgnoreAnswers(err) == nil:
				return movedOn(step), nil
			default:
				return Progress{Step: step}, err
			}
		}
	}
	return e.rest(ctx, Progress{Kind: Waiting, Step: step, Reason: observed.Reason, Again: observed.Again})
}
