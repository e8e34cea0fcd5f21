package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Options of a Run.
type Options struct {
	// Wake rings when the world has changed.
	Wake *Wake
	// Stop, when closed, ends the run after the write that is under way.
	Stop <-chan struct{}
	// Asked has a value when somebody else has written the journal, to pause the plan for example.
	// Without it that is seen at the next write, or after half a minute.
	Asked <-chan struct{}
	// StepTimeout is how long one step may wait before the plan is held, but for those
	// that ask gates, which have timeouts of their own, and for waves that wait for a Slot. The
	// clock of a step starts again with every process.
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
	// relook is how long a wait lasts without a wake-up. It is the net under a
	// watch that died silently, not the way changes are found.
	relook = 30 * time.Second
	// tight is how long a wave that has not left may wait under tightened budgets.
	tight = 5 * time.Second
)

// Run advances the plan until it is Finished, Paused or Held, or until Stop. It
// must be called after TakeOver.
func (e *Engine) Run(ctx context.Context, o Options) (Progress, error) {
	r := run{Engine: e, Options: o, deadline: time.NewTimer(o.StepTimeout)}
	defer r.deadline.Stop()
	defer e.Slot.Leave()
	e.Gates.Stop = o.Stop
	for {
		select {
		case <-o.Stop:
			return r.last, errors.Join(ErrStopped, e.Ease(ctx))
		default:
		}
		p, err := e.Advance(e.hurry(ctx))
		if err != nil {
			if p, err = r.failed(ctx, p, err); err != nil || p.Kind == Held {
				return p, err
			}
			continue
		}
		r.refusals, r.backoff = Refusals{}, nil
		r.report(p)
		switch p.Kind {
		case Held:
			return p, e.Ease(ctx)
		case Finished, Paused:
			return p, nil
		case Waiting:
			if err := r.wait(ctx, p.Again); err != nil {
				return p, err
			}
			if r.expired {
				if err := e.Ease(ctx); err != nil {
					return p, err
				}
				return e.Hold(ctx, p.Step, fmt.Sprintf("%s (waited %s, --step-timeout; `resume` waits again, `abort` walks back)", p.Reason, o.StepTimeout))
			}
		case Advanced:
			if p.Step.Op == plans.Relax {
				r.yield(ctx, p.Step)
			}
		case Wrote:
		}
	}
}

// run is the state of one Run: none of it matters after a death.
type run struct {
	*Engine
	Options
	last     Progress
	deadline *time.Timer
	expired  bool
	refusals Refusals
	backoff  *wait.Backoff
}

func (r *run) report(p Progress) {
	p.Again, p.Left = 0, r.last.Left // no news
	if r.journal != nil {
		p.Left = r.journal.Left()
	}
	if p == r.last || p.Kind == Wrote && p.Reason == "" {
		return
	}
	if p.Step.Seq != r.last.Step.Seq || r.last.Queued {
		r.deadline.Reset(r.StepTimeout)
	}
	if p.Step.Op.Gated() || p.Queued {
		r.deadline.Stop()
	}
	r.last = p
	r.Report(p, nil)
}

// wait returns when something that was looked at has changed, when it was to be
// looked at again (0 for no such time), or when the step has waited too long.
func (r *run) wait(ctx context.Context, soon time.Duration) error {
	if r.meanwhile(ctx) {
		return nil
	}
	limit := relook
	if soon > 0 {
		limit = min(soon, relook)
	}
	again, loosen := time.NewTimer(limit), time.NewTimer(tight)
	defer again.Stop()
	defer loosen.Stop()
	for {
		select {
		case <-loosen.C:
			if r.last.Step.Op == plans.Shrink {
				return r.Ease(ctx) // nothing has left, or it does nothing
			}
			continue
		case <-r.Wake.Bell():
			if !r.glance.outdated(r.Wake.take()) {
				continue
			}
		case <-r.Slot.Free():
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

// failed reports an error and waits before the next attempt. What the API server
// refuses for good becomes a hold.
func (r *run) failed(ctx context.Context, p Progress, err error) (Progress, error) {
	if errors.As(err, new(ErrNoJournal)) {
		return p, err
	}
	r.Report(p, err)
	var now time.Time
	if r.Now != nil {
		now = r.Now()
	}
	if r.refusals.Final(err, r.Renewed, now) {
		held, holdErr := r.Hold(ctx, p.Step, err.Error())
		return held, holdErr
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
	return p, nil
}

// StepOf names the step of a progress for people: the pods and the word, or the
// word alone.
func (e *Engine) StepOf(s plans.Step) string {
	if s.Whole() {
		return string(s.Op)
	}
	return e.plan.Pods(s.Ordinals) + " " + string(s.Op)
}
