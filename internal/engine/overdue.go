package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The clock of a step decides when a wait has lasted too long. It restarts with every progress: with another
// step or reason, and when a pod of the wave has come or gone. It stops while an API server does not answer,
// and restarts when it does: the controllers of a cluster come back with its API server.

// kubeletMargin is how long a pod may take to disappear, in addition to its grace period.
const kubeletMargin = 5 * time.Minute

// lull is what a wave that could leave waits for, and since when. A wait that Tighten does not see has the budgets
// opened and tightened again, and one for a claim has the wave wait for its turn again: it comes back, and its clock
// goes on then. The time for which it waits for its turn does not count.
type lull struct {
	step          plans.Step
	reason        string
	since, queued time.Time
}

// resumes continues the clock of a wait that has come back. It is the monotonic clock, as that of the timer: the wall clock
// may be set at any time, and a machine that sleeps has not waited.
func (r *run) resumes(before lull) {
	if r.Now != nil && !before.queued.IsZero() && !r.last.Queued {
		before.since, before.queued = before.since.Add(r.Now().Sub(before.queued)), time.Time{}
	}
	switch p := r.last; {
	case r.Now == nil:
	case p.Queued && before.queued.IsZero():
		r.lull = before
		r.lull.queued = r.Now()
	case p.Kind != Waiting || p.Step.Op.Gated() || p.Queued || settles(p):
		r.lull = before
	case (p.Step.Op.Leaves() || p.Step.Op.Tightens()) && p.Step == before.step && p.Reason == before.reason:
		r.lull = before
		r.deadline.Reset(max(r.timeout()-r.Now().Sub(before.since), 0))
	default:
		r.lull = lull{step: p.Step, reason: p.Reason, since: r.Now()}
	}
}

// settles reports whether Tighten waits for what follows each of its writes.
func settles(p Progress) bool {
	return p.Step.Op.Tightens() && (p.ID == reasons.BudgetNotObserved || p.ID == reasons.EvictionPending || p.ID == reasons.SetNotObserved)
}

// restart restarts the clock for the step that was last reported.
func (r *run) restart() {
	r.expired, r.stalled, r.lull = false, false, lull{}
	if r.last.Step.Op.Gated() || r.last.Queued {
		r.deadline.Stop() // gates have their own timeouts, and a queue has none
		return
	}
	r.deadline.Reset(r.timeout())
}

// timeout returns how long the step may wait. Pods that terminate have at least their grace period.
func (r *run) timeout() time.Duration {
	if r.last.Step.Op.Stops() {
		return max(r.StepTimeout, r.observer.reads.LongestGrace()+kubeletMargin)
	}
	return r.StepTimeout
}

// turnover reports whether a pod of the wave has come or gone.
func (r *run) turnover(news clusters.Changes) bool {
	for t, c := range news.Of {
		if !c.Turned || t.Kind != "Pod" {
			continue
		}
		for o := range r.last.Step.Ordinals.All() {
			if t.Name == r.plan.Pod(plans.Source, o) || t.Name == r.plan.Pod(plans.Destination, o) {
				return true
			}
		}
	}
	return false
}

// late handles a wait that has lasted too long. With nothing in flight, it opens the budgets and
// blocks the plan. An orchestrator looks on (lookon.go). A wave in flight is reported, and looked at for as
// long as it takes: its pod may come up before any user acts.
func (r *run) late(ctx context.Context, p Progress) (Progress, error) {
	if err := r.recall(ctx); err != nil {
		return p, err
	}
	if r.journal.Epoch != r.epoch {
		return p, nil // the next pass reports it
	}
	if !r.journal.Wave(p.Step).Away {
		r.ease(ctx)
		if r.LookOn {
			return r.hold(ctx, p)
		}
		return r.Block(ctx, p.Step, p.ID, fmt.Sprintf("%s (waited %s, --step-timeout; `resume` waits again, `abort` rolls back)", p.Reason, r.timeout()))
	}
	told, err := r.overdue(ctx, p, r.timeout())
	if r.journal == nil { // the journal is read again, and late is tried again
		return p, writes.IgnoreAnswers(err)
	}
	r.expired = false // until the clock restarts
	r.last.Overdue, r.last.Left = true, r.journal.Left()
	told.Again, told.Left = 0, r.last.Left
	r.Report(told, nil)
	return p, nil
}

// overdue records in the journal what a wave in flight waits for, and returns what is reported about it. Without a
// journal afterwards nothing was recorded.
func (r *run) overdue(ctx context.Context, p Progress, since time.Duration) (Progress, error) {
	r.journal.OverdueID, r.journal.Overdue = p.ID, fmt.Sprintf("%s (for more than %s)", p.Reason, since)
	told := p
	told.Overdue, told.Reason = true, "overdue: "+r.journal.Overdue+"; the plan continues as soon as the wait ends; if the wait cannot end, `abort` rolls back (first stop any command that executes the plan)"
	return told, r.save(ctx)
}

// maxEases is how often the budgets are tried to be opened at the end of a run.
const maxEases = 5

// ease opens the budgets, in a few attempts. If all fail, the run ends all the same.
func (r *run) ease(ctx context.Context) {
	if err := r.easing.unplace(ctx); err != nil {
		r.Report(r.last, err)
	}
	for range maxEases {
		if r.eases(ctx) {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// eases opens the budgets once, and records whether that must be tried again.
func (r *run) eases(ctx context.Context) bool {
	waits, err := r.easing.ease(ctx)
	if err != nil {
		r.Report(r.last, err)
	}
	if r.tight = err != nil || waits.Reason != ""; !r.tight {
		r.tightens = false
		r.openBudgets.settled()
		r.sent = sent{} // that the budgets are tightened again does not mean that it had no effect
	}
	return !r.tight
}
