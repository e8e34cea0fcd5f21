package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// Options of a Run.
type Options struct {
	// Wake rings when the world has changed.
	Wake *clusters.ChangeSignal
	// Stop, when closed, ends the run after the write that is under way.
	Stop <-chan struct{}
	// Asked has a value when somebody else has written the journal, to pause the plan for example.
	// Without it that is seen at the next write, or after half a minute.
	Asked <-chan struct{}
	// StepTimeout is how long one step may wait without any progress before the plan is held, or, with
	// ordinals in flight, before the wait is told as overdue. It is not for steps that ask gates, which have
	// timeouts of their own, nor for waves that wait for a Permit. The clock of a step starts again with
	// every process.
	StepTimeout time.Duration
	// Renewed says that credentials are renewed while the plan is carried out: an API
	// server that does not know them is asked again, and again.
	Renewed bool
	// Report gets every progress that differs from the one before, and every
	// error that is tried again.
	Report func(Progress, error)
}

// ErrStopped says that a run ended because its Stop was closed.
var ErrStopped = errors.New("stopped")

const (
	// watchlessRecheck is how long a wait lasts without a wake-up. It is the net under a
	// watch that died silently, not the way changes are found.
	watchlessRecheck = 30 * time.Second
	// maxTightWait is how long a wave that has not left may wait under tightened budgets.
	maxTightWait = 5 * time.Second
	// minListWait is how long a wait lasts at least that is about a whole list: others change what is in it all the
	// time, and to look at it costs as much as it is long.
	minListWait = time.Second
)

// Run advances the plan until it is Finished, Paused or Held, or until Stop. It
// must be called after TakeOver.
func (e *Engine) Run(ctx context.Context, o Options) (Progress, error) {
	r := run{Engine: e, Options: o, deadline: time.NewTimer(o.StepTimeout), tight: true}
	defer r.deadline.Stop()
	defer e.Permit.Release()
	e.Gates.Stop = o.Stop
	for {
		select {
		case <-o.Stop:
			r.ease(ctx)
			return r.last, ErrStopped
		default:
		}
		p, err := e.Advance(e.hurry(ctx))
		if err == nil {
			p, err = r.next(ctx, p)
		}
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
		}
	}
}

// next does what is due after one pass.
func (r *run) next(ctx context.Context, p Progress) (Progress, error) {
	r.refusals, r.backoff = PermanentErrors{}, nil
	r.report(p)
	switch p.Kind {
	case Waiting:
		if r.expired {
			if p, err := r.late(ctx, p); err != nil || p.Kind == Blocked || r.expired {
				return p, err
			}
		}
		if r.meanwhile(ctx) {
			return p, nil
		}
		return p, r.wait(ctx, p.Again)
	case Advanced:
		if p.Step.Op == plans.Relax {
			r.yield(ctx, p.Step)
		}
	case Wrote, "": // or a journal that could not be written
		if p.Step.Op == plans.Tighten {
			r.tight = false // they are meant to be
		}
		return r.wrote(ctx, p)
	default:
	}
	return p, nil
}

// run is the state of one Run: none of it matters after a death.
type run struct {
	*Engine
	Options
	last     Progress
	deadline *time.Timer
	// expired says that the step has waited for too long, and stalled that its clock stands since
	// somebody did not answer.
	expired, stalled bool
	// tight says that the budgets may be tight for a wave that has not left, in spite of an attempt to
	// open them, or from a process before this one.
	tight    bool
	refusals PermanentErrors
	backoff  *wait.Backoff
	sent     sent
}

func (r *run) report(p Progress) {
	p.Again, p.Left, p.Overdue = 0, r.last.Left, r.last.Overdue // no news
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
	r.last = p
	r.restart()
	r.Report(p, nil)
}

// wait returns when something that was looked at has changed, when it was to be
// looked at again (0 for no such time), or when the step has waited too long.
func (r *run) wait(ctx context.Context, at time.Duration) error {
	var lull <-chan time.Time
	again, loosen := time.NewTimer(r.limit(at)), time.NewTimer(maxTightWait)
	defer again.Stop()
	defer loosen.Stop()
	for {
		select {
		case <-loosen.C:
			if !r.loosens() {
				continue
			}
			r.eases(ctx) // nothing has left, or it does nothing
		case <-r.Wake.C():
			urgency := r.hears()
			if urgency == clusters.Soon && lull == nil {
				lull = time.After(minListWait)
			}
			if urgency != clusters.Now {
				continue
			}
		case <-lull:
		case <-r.Permit.Free():
		case <-r.Asked:
			r.journal = nil
		case <-again.C:
			r.journal = nil // nobody has told us anything for long
		case <-r.Stop: // looked at by the loop
		case <-r.deadline.C:
			r.expired = true
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
}

// limit is how long a wait lasts that nothing ends.
func (r *run) limit(at time.Duration) time.Duration {
	limit := watchlessRecheck
	if at > 0 {
		limit = min(at, watchlessRecheck)
	}
	if r.reads.Cached {
		limit = min(limit, minListWait) // what has been told may have been older than what was read
	}
	return limit
}

// loosens says whether the budgets are to be open while the step waits.
func (r *run) loosens() bool {
	op := r.last.Step.Op
	return op == plans.Shrink || op == plans.Tighten && r.tight
}

// hears takes the news, and says how urgent they are.
func (r *run) hears() clusters.Urgency {
	news := r.Wake.Take()
	if r.turnover(news) {
		r.restart()
	}
	return r.reads.News(news, r.ofSet)
}

// ofSet says whether something is a pod of the set.
func (r *run) ofSet(t clusters.ObjectKey) bool {
	return t.Kind == "Pod" && strings.HasPrefix(t.Name, r.plan.Source.Name+"-")
}

// failed reports an error and waits before the next attempt. What the API server
// refuses for good becomes a hold.
func (r *run) failed(ctx context.Context, p Progress, err error) (Progress, error) {
	if errors.As(err, new(records.ErrNoJournal)) || ctx.Err() != nil {
		return p, err
	}
	r.Report(p, err)
	if !r.expired { // else what failed is to say so
		r.deadline.Stop()
		r.stalled = true
	}
	var now time.Time
	if r.Now != nil {
		now = r.Now()
	}
	if r.refusals.GiveUp(err, r.Renewed, now) {
		held, holdErr := r.Block(ctx, p.Step, err.Error())
		if holdErr == nil {
			return held, nil
		}
		r.Report(p, holdErr)
	}
	if r.backoff == nil {
		r.backoff = &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 10 * time.Second}
	}
	pause := time.NewTimer(r.backoff.Step())
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-r.Stop:
	case <-ctx.Done():
		return p, ctx.Err()
	}
	return Progress{Step: p.Step}, nil
}

// StepOf names the step of a progress for people: the pods and the word, or the
// word alone.
func (e *Engine) StepOf(s plans.Step) string {
	if s.Whole() {
		return string(s.Op)
	}
	return e.plan.Pods(s.Ordinals) + " " + string(s.Op)
}

// hurry marks what is sent from the moment when the budgets are tight until they are open again.
// What comes before a wave, its checks above all, is not urgent: so no more waves begin than
// the limit on requests lets through without delay.
func (e *Engine) hurry(ctx context.Context) context.Context {
	if e.journal != nil && e.journal.TightSince != nil {
		return clusters.Urgent(ctx)
	}
	return ctx
}
