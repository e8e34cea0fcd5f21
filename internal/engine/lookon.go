package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/engine/refusals"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A wait with nothing in flight that is too long blocks the plan, so that a person looks at it. Where the wait ends by
// itself, as that for a snapshot, the person has nothing to do. So a process that carries plans out on behalf of others
// looks on. It writes nothing for the wave meanwhile: the budgets are open, and the sets are not pinned. That is why it
// continues by itself only where a look that has written nothing sees what the plan waits for. Otherwise it would tighten
// the budgets again and again to find that out, and the plan is blocked until the user acts.

// hold blocks the plan for a wait that was too long, with nothing in flight and the budgets open.
func (r *run) hold(ctx context.Context, p Progress) (Progress, error) {
	if err := r.recall(ctx); err != nil {
		return p, err
	}
	if r.journal.Epoch != r.epoch {
		return p, nil // the next pass reports it
	}
	waited := fmt.Sprintf("waited %s, --step-timeout", r.timeout())
	step, awaits, err := r.observer.awaits(ctx)
	switch {
	case err != nil:
		return p, err
	case awaits.Standing != plans.During:
		return r.Block(ctx, p.Step, p.ID, fmt.Sprintf("%s (%s; `resume` waits again, `abort` rolls back)", p.Reason, waited))
	case r.journal == nil:
		return p, nil
	}
	why := records.Brief(fmt.Sprintf("%s (%s; the plan continues by itself when that has ended, `abort` rolls back)", awaits.Reason, waited))
	r.journal.Block(awaits.ID, why)
	r.journal.Awaits = records.Brief(awaits.Reason)
	r.record(journal.PlanBlocked, awaits.ID, why)
	if err := r.save(ctx); err != nil {
		return p, writes.IgnoreAnswers(err) // it is tried again
	}
	r.expired = false
	r.Permit.Release()
	r.last = Progress{Kind: Blocked, Step: step, ID: awaits.ID, Reason: why}
	r.Report(r.last, nil)
	return Progress{Kind: Waiting, Step: step, ID: awaits.ID, Reason: why}, nil
}

// looksOn looks whether what a blocked plan waits for has ended, if that is all that blocks it, and reports whether it is.
// What the user has decided comes first.
func (r *run) looksOn(ctx context.Context) (Progress, bool, error) {
	if !r.LookOn {
		return Progress{}, false, nil
	}
	if err := r.recall(ctx); err != nil || r.journal.Epoch != r.epoch || !r.journal.LooksOn() {
		return Progress{}, false, err
	}
	if r.finishing {
		return Progress{Kind: Stopped, Reason: "stopped; no ordinal is in flight"}, true, nil
	}
	if r.tight { // the last attempt has failed, or another process has died before it
		r.eases(ctx)
	}
	again, err := r.tends(ctx)
	if err != nil {
		return Progress{}, true, err
	}
	p, err := r.sees(ctx, again)
	return p, true, err
}

// waits ends a look that has come to its end, and waits for a change.
func (r *run) waits(ctx context.Context, again time.Duration) error {
	r.refusals, r.backoff, r.belated, r.telling = refusals.Counter{}, nil, false, false
	return r.wait(ctx, again)
}

// sees makes one look, and has the plan go on if what it waits for has ended. Another reason is another wait, which has not
// been too long.
func (r *run) sees(ctx context.Context, again time.Duration) (Progress, error) {
	if err := r.recall(ctx); err != nil || r.journal.Epoch != r.epoch || !r.journal.LooksOn() {
		return Progress{}, err // the next pass reports it
	}
	if relax, ok := r.arrived(); ok && again > 0 && r.journal.Done < relax.Seq { // the budgets are being handed over
		return Progress{Kind: Waiting, Step: relax}, r.waits(ctx, again)
	}
	step, awaits, err := r.observer.awaits(ctx)
	if err != nil {
		return Progress{Step: step}, err
	}
	if p, halts, err := r.stopping.turn(ctx, step, step.Seq <= r.journal.Begun); halts || err != nil {
		return p, err
	}
	if r.journal.Paused || awaits.Standing == plans.During && records.Brief(awaits.Reason) == r.journal.Awaits {
		return Progress{Kind: Waiting, Step: step}, r.waits(ctx, again)
	}
	return r.goesOn(ctx, step)
}

// goesOn lets the plan go on. The order must hold: the journal says so FIRST, and only if no other writer has changed it.
// Then the application and the checks are asked anew (S19), by looks that read the clusters anew.
func (r *run) goesOn(ctx context.Context, step plans.Step) (Progress, error) {
	awaited := r.journal.Awaits
	r.journal.Unblock()
	r.record(journal.PlanContinued, "", awaited)
	if err := r.save(ctx); err != nil {
		return Progress{Step: step}, writes.IgnoreAnswers(err)
	}
	r.observer.void()
	r.Recent.Forget()
	p := Progress{Kind: Continued, Step: step, Reason: "the plan continues by itself, since this has ended: " + awaited}
	r.last = Progress{Step: step}
	r.restart()
	r.Report(p, nil)
	return p, nil
}

// tends lets drains of either side through, as at rest (L5). It returns when to look again while it does.
func (r *run) tends(ctx context.Context) (again time.Duration, err error) {
	who, err := r.Drains.Tend(ctx)
	if err != nil || who == "" || r.Now == nil {
		return 0, err
	}
	if who != r.lets.who {
		r.lets = lets{who, r.Now()}
	}
	if r.Now().Sub(r.lets.since) > drainIdleTimeout { // the sides take turns
		r.way.pass()
		r.lets.since = r.Now()
	}
	return minRecheck, nil
}

// lets is whose evictions are let through while the plan is blocked, and since when.
type lets struct {
	who   string
	since time.Time
}
