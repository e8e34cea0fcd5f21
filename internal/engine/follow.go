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

// placeGrace is the same where it is the place of the next wave that is not there yet. To open the budgets and to tighten them
// again would take as long.
const placeGrace = maxTightWait

// skipRelax leaves Relax out. Without one, the budgets are opened after every wave. None of its fields matters after a crash.
type skipRelax struct {
	*memory

	see func(ctx context.Context, step plans.Step, began bool) (plans.Observation, error)
	act func(ctx context.Context, step plans.Step, began bool, observed plans.Observation) (Progress, error)
	// place makes the places of a wave. It returns the progress of that, and how they stand.
	place   func(ctx context.Context, step plans.Step) (Progress, plans.Observation, error)
	drained func(context.Context) bool

	relax int       // the Seq of the Relax that may be left out
	since time.Time // when it was first tried
	over  bool      // that the next wave was found to wait
	next  int       // the Seq of the Tighten that found the budgets of the wave before still tight
}

// follows reports whether a step has found the budgets of the wave before still tight.
func (e *skipRelax) follows(step plans.Step) bool { return e != nil && step.Seq == e.next }

// tries reports whether a Relax may still be left out.
func (e *skipRelax) tries(relax plans.Step) bool {
	if e.relax != relax.Seq {
		e.relax, e.since, e.over, e.next = relax.Seq, e.at(), false, 0
	}
	return !e.over
}

// turn begins the wave after that of a Relax if it can go at once.
func (e *skipRelax) turn(ctx context.Context, step plans.Step, _ bool) (Progress, bool, error) {
	if e == nil || !step.Op.Loosens() || !e.tries(step) {
		return Progress{}, false, nil
	}
	next, more := e.plan.Step(e.journal.Leg, step.Seq+1)
	j := e.journal
	if !more || !next.Op.Tightens() || e.finishing || j.Paused || j.PauseDue(next) || j.Unsure(step) || j.Unsure(next) || e.Permit.GivesWay() || e.drained(ctx) {
		e.over = true
		return Progress{}, false, nil
	}
	return e.begin(ctx, step, next)
}

// begin begins the wave after the one of a Relax, and reports whether it did, or waits for a moment. Whatever is
// in the way of that wave is left to its Tighten, after the Relax. Nothing of this is in the journal before the intent of
// the next wave: a process that dies here leaves the plan at its Relax, and the budgets tight, as in the middle of a wave.
func (e *skipRelax) begin(ctx context.Context, relax, next plans.Step) (Progress, bool, error) {
	j := e.journal
	done := j.Done
	e.next, j.Done = next.Seq, relax.Seq
	observed, err := e.see(ctx, next, false)
	e.next, j.Done = 0, done
	grace := followGrace
	if err == nil && (observed.Standing == plans.Before || observed.Standing == plans.After) {
		p, places, failed := e.place(ctx, next)
		if e.journal == nil || failed == nil && p.Kind != "" {
			return p, true, failed
		}
		if err = failed; places.Standing == plans.During {
			observed, grace = places, placeGrace
		}
	}
	if err == nil && (observed.Standing == plans.Before || observed.Standing == plans.After) {
		return e.follow(ctx, relax, next, observed)
	}
	if err == nil && observed.Standing == plans.During && e.Now != nil {
		if left := grace - clusters.Elapsed(e.since, e.Now()); left > 0 {
			return Progress{Kind: Waiting, Step: relax, ID: observed.ID, Reason: observed.Reason, Again: left}, true, nil
		}
	}
	e.over = true
	return Progress{}, false, nil
}

// follow takes the first step of the next wave, without the Relax before it.
func (e *skipRelax) follow(ctx context.Context, relax, next plans.Step, observed plans.Observation) (Progress, bool, error) {
	e.next, e.journal.Done, e.passed = next.Seq, relax.Seq, relax.Seq
	if e.Now != nil {
		now := e.Now()
		e.note(relax, func(j *journal.Journal) { j.Loosened(now) })
	}
	p, err := e.act(ctx, next, false, observed)
	return p, true, err
}
