package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Between two waves the budgets are opened for as long as it takes to tighten them again, which is too short for any
// eviction. So when the next wave can go at once and no node is being drained, Relax is left out: the budgets stay
// tight, or are brought to what the next wave leaves.

// followGrace is how long the budgets stay tight for a next wave that cannot go yet. The controller of a set needs a
// moment to count a pod that has become ready.
const followGrace = 300 * time.Millisecond

// follow is what this process knows of the wave that may follow. None of it matters after a crash.
type follow struct {
	relax int       // the Seq of the Relax that may be left out
	since time.Time // when it was first tried
	over  bool      // that the next wave was found to wait
	next  int       // the Seq of the Tighten that found the budgets of the wave before still tight
}

// tries reports whether a Relax may still be left out.
func (f *follow) tries(relax plans.Step, now func() time.Time) bool {
	if f.relax != relax.Seq {
		*f = follow{relax: relax.Seq}
		if now != nil {
			f.since = now()
		}
	}
	return !f.over
}

// mayFollow begins the wave after that of a Relax if it can go at once.
func (e *Engine) mayFollow(ctx context.Context, step plans.Step, more bool) (Progress, bool, error) {
	if !more || !step.Op.Loosens() || e.Apart || !e.follow.tries(step, e.Now) {
		return Progress{}, false, nil
	}
	next, more := e.plan.Step(e.journal.Leg, step.Seq+1)
	j := e.journal
	if !more || !next.Op.Tightens() || e.finishing || j.Paused || j.PauseDue(next) || j.Unsure(step) || j.Unsure(next) || e.Permit.GivesWay() || e.drains(ctx) {
		e.follow.over = true
		return Progress{}, false, nil
	}
	return e.followOn(ctx, step, next)
}

// followOn begins the wave after the one of a Relax, and reports whether it did, or waits for a moment. Whatever is in
// the way of that wave is left to its Tighten, after the Relax. Nothing of this is in the journal before the intent of
// the next wave: a process that dies here leaves the plan at its Relax, and the budgets tight, as in the middle of a wave.
func (e *Engine) followOn(ctx context.Context, relax, next plans.Step) (Progress, bool, error) {
	j := e.journal
	done := j.Done
	e.follow.next, j.Done = next.Seq, relax.Seq
	observed, err := e.see(ctx, next, false)
	if err == nil && (observed.Standing == plans.Before || observed.Standing == plans.After) {
		e.passed = relax.Seq
		if e.Now != nil {
			now := e.Now()
			e.note(relax, func(j *journal.Journal) { j.Loosened(now) })
		}
		p, err := e.act(ctx, next, false, observed)
		return p, true, err
	}
	e.follow.next, j.Done = 0, done
	if err == nil && observed.Standing == plans.During && e.Now != nil {
		if left := followGrace - clusters.Elapsed(e.follow.since, e.Now()); left > 0 {
			return Progress{Kind: Waiting, Step: relax, ID: observed.ID, Reason: observed.Reason, Again: left}, true, nil
		}
	}
	e.follow.over = true
	return Progress{}, false, nil
}
