package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/engine/refusals"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Options are the options of a Run.
type Options struct {
	// Wake signals that something in the clusters has changed.
	Wake *clusters.ChangeSignal
	// Finish, when closed, ends the run as soon as no ordinal is in flight: a wave that has left is finished first.
	Finish <-chan struct{}
	// Stop, when closed, ends the run after the current write.
	Stop <-chan struct{}
	// Asked has a value when another writer has written the journal, for example to pause the plan. Without
	// Asked, the run notices that at the next write, or after half a minute.
	Asked <-chan struct{}
	// StepTimeout is how long one step may wait without progress before the plan is blocked, or, with
	// ordinals in flight, before the wait is reported as overdue. It does not apply to steps that run
	// gates, which have their own timeouts, nor to waves that wait for a Permit. The clock of a step starts
	// again with every process.
	StepTimeout time.Duration
	// LookOn has a plan continue by itself that was blocked only because a wait with nothing in flight was too long. The run
	// does not end there, and looks whether that has ended.
	LookOn bool
	// Renewed reports that credentials are renewed during the run: an API server that does not know them is
	// asked again without limit.
	Renewed bool
	// Report receives every progress that differs from the one before, and every error that is retried.
	Report func(Progress, error)
}

// ErrStopped is the error of a run that ended because its Finish or its Stop was closed. After Finish, the Progress is
// Stopped.
var ErrStopped = errors.New("stopped")

const (
	// watchlessRecheck is how long a wait lasts without a signal. It catches a watch that died silently;
	// otherwise the watches find changes.
	watchlessRecheck = 30 * time.Second
	// maxTightWait is how long a wave that has not left may wait under tightened budgets.
	maxTightWait = 5 * time.Second
	// minListWait is the minimum wait for a change that concerns a whole list: other writers change its items
	// all the time, and a look costs as much as the list is long.
	minListWait = time.Second
)

// Run advances the plan until it is Finished, Paused or Blocked. If Finish or Stop is closed, it returns ErrStopped. Run
// must be called after TakeOver.
func (e *Engine) Run(ctx context.Context, o Options) (Progress, error) {
	r := run{Engine: e, Options: o, deadline: time.NewTimer(o.StepTimeout), tight: true}
	defer r.deadline.Stop()
	defer e.Permit.Release()
	defer e.ahead.wait()
	e.Gates.Stop, e.Gates.Finish = o.Stop, o.Finish
	for {
		select {
		case <-o.Stop:
			r.cut(ctx)
			return r.last, ErrStopped
		case <-r.Finish:
			r.finishes()
			continue // Stop may be closed too
		default:
		}
		p, err := r.pass(ctx)
		if err != nil {
			p, err = r.failed(ctx, p, err)
		}
		switch {
		case err != nil:
			return p, err
		case p.Kind == Blocked:
			r.ease(ctx)
			return p, nil
		case p.Kind == Finished, p.Kind == Paused:
			return p, nil
		case p.Kind == Stopped:
			return p, ErrStopped
		}
	}
}

// pass makes one pass, or, of a plan that is blocked only because a wait was too long, looks whether that has ended.
func (r *run) pass(ctx context.Context) (Progress, error) {
	if p, on, err := r.looksOn(ctx); on || err != nil {
		return p, err
	}
	p, err := r.Advance(r.hurry(ctx))
	if err == nil {
		p, err = r.next(ctx, p)
	}
	return p, err
}

// next handles the result of one pass.
func (r *run) next(ctx context.Context, p Progress) (Progress, error) {
	r.refusals, r.backoff, r.belated, r.telling = refusals.Counter{}, nil, false, false
	r.report(p)
	r.flies(r.journal)
	switch p.Kind {
	case Waiting:
		if r.expired {
			if p, err := r.late(ctx, p); err != nil || p.Kind == Blocked || r.expired {
				return p, err
			}
		}
		if err := r.yielding.wait(ctx, p); err != nil {
			r.Report(p, err)
		}
		if r.meanwhile(ctx) {
			return p, nil
		}
		return p, r.wait(ctx, p.Again)
	case Advanced:
		if p.Step.Op.Loosens() {
			r.yield(ctx, p.Step)
		}
	case Wrote, "": // "" if the journal could not be written
		if p.Step.Op.Tightens() {
			r.tight, r.tightens = false, true // the budgets are tight on purpose
			r.openBudgets.settled()
		}
		return r.wrote(ctx, p)
	default:
	}
	return p, nil
}

// run is the state of one Run. None of it matters after a crash.
type run struct {
	*Engine
	Options
	last     Progress
	deadline *time.Timer
	// expired reports that the step has waited too long. stalled reports that its clock has stopped because
	// an API server did not answer.
	expired, stalled bool
	// tight reports that the budgets may be tight for a wave that has not left, because an attempt to open
	// them failed, or because an earlier process left them so.
	tight bool
	// tightens reports that this process has written for a Tighten that it has not eased since.
	tightens bool
	refusals refusals.Counter
	// belated reports that the journal says of the present refusals that they are overdue.
	belated bool
	backoff *wait.Backoff
	sent    sent
	lull    lull
	lets    lets
}

func (r *run) report(p Progress) {
	p.Again, p.Left, p.Overdue = 0, r.last.Left, r.last.Overdue // changes of these alone are not reported
	if r.journal != nil {
		p.Left = r.journal.Left()
	}
	if p == r.last || p.Kind == Wrote && p.Reason == "" {
		if r.stalled {
			r.restart()
		}
		return
	}
	p.Overdue = false
	before := r.lull
	r.last = p
	r.restart()
	r.resumes(before)
	r.Report(p, nil)
}

// wait returns when something that was read has changed, when the next look is due after at (0 for no
// such time), when a permit is free, when another writer has written the journal, on Stop, or when the
// step has waited too long.
func (r *run) wait(ctx context.Context, at time.Duration) error {
	var lull <-chan time.Time
	again, loosen := time.NewTimer(r.limit(at)), time.NewTimer(maxTightWait)
	defer again.Stop()
	defer loosen.Stop()
	defer r.wakes(r.at(), r.limit(at))
	for {
		select {
		case <-loosen.C:
			if !r.loosens() {
				continue
			}
			r.eases(ctx) // does nothing if the wave has left
		case <-r.Wake.C():
			urgency := r.hears(ctx)
			lull = lullAfter(urgency, lull)
			if urgency != clusters.Now {
				continue
			}
		case <-lull:
		case <-r.Permit.Free():
		case <-r.Asked:
			r.journal = nil
		case <-again.C:
			r.doubts(at)
		case <-r.Stop: // Run checks it
		case <-r.Finish:
			r.finishes()
		case <-r.deadline.C:
			r.expired = true
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
}

// lullAfter returns the channel that ends the minimum wait after a change of a list. It is the one of a wait that has
// begun already, and nil before such a change.
func lullAfter(urgency clusters.Urgency, begun <-chan time.Time) <-chan time.Time {
	if urgency == clusters.Soon && begun == nil {
		return time.After(minListWait)
	}
	return begun
}

// doubts reads everything again after a wait without a signal: the journal may have changed too, and after a long one
// a watch may have died silently.
func (r *run) doubts(at time.Duration) {
	if r.journal = nil; r.limit(at) == watchlessRecheck {
		r.Recent.Forget()
	}
}

// limit returns the maximum length of a wait.
func (r *run) limit(at time.Duration) time.Duration {
	limit := watchlessRecheck
	if at > 0 {
		limit = min(at, watchlessRecheck)
	}
	return limit
}

// loosens reports whether the budgets should be open, and the sets be pinned no more, while the step waits. What follows
// each write of Tighten comes soon; whatever else has come up in the middle of it may last.
func (r *run) loosens() bool {
	op := r.last.Step.Op
	if r.openBudgets == nil {
		return false
	}
	return op.Leaves() || op.Tightens() && (r.tight || r.openBudgets.left || r.tightens && !settles(r.last))
}

// hears takes the pending changes and returns their urgency.
func (r *run) hears(ctx context.Context) clusters.Urgency {
	news := r.Wake.Take()
	if r.turnover(news) {
		r.restart()
	}
	news = besidePlaces(ctx, r, news)
	return r.observer.reads.News(news, r.ofSet)
}

// ofSet reports whether an object is a pod of the set, judged by its name.
func (r *run) ofSet(t clusters.ObjectKey) bool {
	return t.Kind == "Pod" && (r.plan.HasPod(plans.Source, t.Name) || r.plan.HasPod(plans.Destination, t.Name))
}

// failed reports an error and waits before the next attempt. A refusal by the API server that has lasted for
// long enough blocks the plan (refused).
func (r *run) failed(ctx context.Context, p Progress, err error) (Progress, error) {
	if errors.As(err, new(records.ErrNoJournal)) || ctx.Err() != nil {
		return p, err
	}
	r.Report(p, err)
	if r.finishing && !r.flying {
		r.ease(ctx)
		return Progress{Kind: Stopped, Step: p.Step, Reason: "stopped; no ordinal is in flight"}, ErrStopped
	}
	if !r.expired { // else the next attempt must still report the expiry
		r.deadline.Stop()
		r.stalled, r.lull = true, lull{}
	}
	var now time.Time
	if r.Now != nil {
		now = r.Now()
	}
	if answers.NoLogin(err) {
		r.tells(ctx, reasons.CredentialsExpired, err.Error())
	}
	if r.refusals.GiveUp(err, refusals.Rule{Patience: r.StepTimeout, Renewed: r.Renewed}, now) {
		held, holdErr := r.refused(ctx, p, err)
		if holdErr == nil && held.Kind == Blocked {
			return held, nil
		}
		if holdErr != nil {
			r.Report(p, holdErr)
		}
	}
	if err := r.backOff(ctx); err != nil {
		return p, err
	}
	return Progress{Step: p.Step}, nil
}

// backOff waits before the next attempt, longer after each failure. A run that is to end waits no longer.
func (r *run) backOff(ctx context.Context) error {
	if r.backoff == nil {
		r.backoff = &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 10 * time.Second}
	}
	asked := r.backoff.Step()
	pause := time.NewTimer(asked)
	defer pause.Stop()
	defer r.wakes(r.at(), asked)
	select {
	case <-pause.C:
	case <-r.Finish:
		r.finishes()
	case <-r.Stop:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
