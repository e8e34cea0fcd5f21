package simulation

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

const stepTimeout = 10 * time.Minute

// running is a process that carries out a plan, seen from outside.
type running struct {
	w    *world
	e    *engine.Engine
	wake *clusters.ChangeSignal
	stop chan struct{}
	down atomic.Bool // no cluster responds
	over chan ended
	last engine.Progress
	errs int
}

type ended struct {
	engine.Progress
	err error
}

// carried runs a process by the clock of the test, as a command does.
func carried(t *testing.T, w *world, r *process, e *engine.Engine) *running {
	t.Helper()
	return carriedAs(t, w, r, e, false)
}

// carriedAs runs a process by the clock of the test. One that looks on does so for others, as an orchestrator.
func carriedAs(t *testing.T, w *world, r *process, e *engine.Engine, looksOn bool) *running {
	t.Helper()
	return carriedBy(t, w, r, e, engine.Options{Wake: clusters.NewChangeSignal(), StepTimeout: stepTimeout, LookOn: looksOn})
}

// carriedBy runs a process with these options.
func carriedBy(t *testing.T, w *world, r *process, e *engine.Engine, o engine.Options) *running {
	t.Helper()
	p := &running{w: w, e: e, wake: o.Wake, stop: make(chan struct{}), over: make(chan ended, 1)}
	r.away = func(*store) bool { return p.down.Load() }
	e.Now = time.Now
	o.Stop = p.stop
	o.Report = func(now engine.Progress, err error) {
		if err != nil {
			p.errs++
		} else {
			p.last = now
		}
	}
	go func() {
		last, err := e.Run(t.Context(), o)
		p.over <- ended{last, err}
	}()
	synctest.Wait() // the world and the process act in turn
	return p
}

// after waits for d. It returns how the process has ended by then, or false if it is still running.
func (p *running) after(d time.Duration) (ended, bool) {
	select {
	case e := <-p.over:
		return e, true
	case <-time.After(d):
		synctest.Wait()
		return ended{}, false
	}
}

// rests lets the world come to rest and the process observe it, until the process ends.
func (p *running) rests(t *testing.T) ended {
	t.Helper()
	for range 200 {
		p.w.rest()
		if e, over := p.after(time.Minute); over {
			return e
		}
	}
	t.Fatalf("it never ends: %+v", p.last)
	return ended{}
}

// wrote advances until a write of a step with this operation has been sent.
func (w *world) wrote(t *testing.T, r *process, e *engine.Engine, op plans.Op) {
	t.Helper()
	for range 5000 {
		p, err := e.Advance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind == engine.Wrote && p.Step.Op == op {
			return
		}
		w.others(r, p.Kind)
	}
	t.Fatalf("it never wrote %s", op)
}

// sick makes the node of a pod fail, so that the pod is not ready, and returns a function that repairs the
// node.
func (w *world) sick(side plans.Side, o int32) (mend func()) {
	s, pod := w.on[side], clone(w.pod(side, o))
	power := func(status corev1.ConditionStatus) {
		node, _ := get[*corev1.Node](s, "", pod.Spec.NodeName)
		next := clone(node)
		next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		s.put(next)
	}
	w.foreign = true
	power(corev1.ConditionFalse)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	s.put(pod)
	return func() { power(corev1.ConditionTrue) }
}

// An outage does not make a step overdue: the clock of a step stops while a cluster does not respond,
// whatever is in flight.
func TestAnOutageIsNoReasonToHold(t *testing.T) {
	for name, op := range map[string]plans.Op{"a pod starts": plans.Grow, "nothing is in flight": plans.Relax} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(apart(threeOrdinals(plans.Rebind)))
				r, e := w.begin(t, plans.Move)
				w.wrote(t, r, e, op)
				p := carried(t, w, r, e)
				p.after(20 * time.Second) // it waits
				p.down.Store(true)
				if got, over := p.after(2 * stepTimeout); over || p.errs == 0 {
					t.Fatalf("%+v in an outage, with %d errors", got, p.errs)
				}
				p.down.Store(false)
				if got, over := p.after(stepTimeout / 2); over || p.last.Overdue {
					t.Fatalf("after an outage, without waiting anew: %+v, last %+v", got, p.last)
				}
				if got := p.rests(t); got.Outcome != plans.Moved || got.err != nil {
					t.Errorf("%+v", got)
				}
				unbroken(t, w)
			})
		})
	}
}

// A wave that is in flight for too long is reported as overdue and looked at for as long as it takes. No user
// has to act for the process to observe that its pod is up.
func TestAnOverdueWaveContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(threeOrdinals(plans.Rebind))
		r, e := w.begin(t, plans.Move)
		w.wrote(t, r, e, plans.Grow)
		p := carried(t, w, r, e)
		if got, over := p.after(stepTimeout - time.Minute); over || p.last.Overdue {
			t.Fatalf("too early: %+v, last %+v", got, p.last)
		}
		if got, over := p.after(2 * time.Minute); over || !p.last.Overdue || w.journal.Overdue == "" || w.journal.Blocked != "" {
			t.Fatalf("%+v, last %+v, journal %+v", got, p.last, w.journal)
		}
		if got, over := p.after(10 * stepTimeout); over {
			t.Fatalf("it does not look any more: %+v", got)
		}
		if got := p.rests(t); got.Outcome != plans.Moved || got.err != nil || w.journal.Overdue != "" {
			t.Errorf("%+v, journal %+v", got, w.journal)
		}
		unbroken(t, w)
	})
}

// A plan that waits too long before an ordinal leaves is held as soon as the hold can be recorded. The
// budgets are open then.
func TestAWaitBeforeAWaveIsHeldOnceThatCanBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(apart(threeOrdinals(plans.Rebind)))
		r, e := w.begin(t, plans.Move)
		w.until(t, r, e, plans.Relax)
		w.until(t, r, e, plans.Tighten)
		w.rest()
		w.sick(plans.Source, 0)
		refusals := 0
		r.at = func(int) fault {
			if set := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); set > stepTimeout && refusals < 3 && r.now.kind == "ConfigMap" {
				refusals++
				return refused500
			}
			return ""
		}
		p := carried(t, w, r, e)
		got, over := p.after(2*stepTimeout + time.Minute)
		if !over || got.Kind != engine.Blocked || got.err != nil || w.journal.Blocked != got.Reason || refusals != 3 {
			t.Fatalf("%+v (%t), journal %q, refused %d times", got, over, w.journal.Blocked, refusals)
		}
		w.rest()
		if w.room() == 0 {
			t.Error("the budgets are tight while it is blocked")
		}
	})
}

// A failure to open the budgets is retried, and never ends a run.
func TestBudgetsThatCannotBeOpenedEndNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(apart(threeOrdinals(plans.Rebind)))
		r, e := w.begin(t, plans.Move)
		w.until(t, r, e, plans.Relax)
		w.until(t, r, e, plans.Tighten)
		w.rest()
		mend := w.sick(plans.Source, 0)
		p := carried(t, w, r, e)
		p.after(4900 * time.Millisecond)
		p.down.Store(true)
		p.after(200 * time.Millisecond)
		p.down.Store(false)
		if got, over := p.after(time.Minute); over {
			t.Fatalf("a hiccup ended the run: %+v", got)
		}
		w.rest()
		if w.room() == 0 {
			t.Error("the budgets stay tight while the wave waits")
		}
		mend()
		if got := p.rests(t); got.Outcome != plans.Moved || got.err != nil {
			t.Errorf("%+v", got)
		}
	})
}

// A stop ends a run as a stop, and a hold as a hold, even if the budgets cannot be opened.
func TestAStopIsReportedWhenTheBudgetsCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(apart(threeOrdinals(plans.Rebind)))
		r, e := w.begin(t, plans.Move)
		w.until(t, r, e, plans.Relax)
		w.until(t, r, e, plans.Tighten)
		w.rest()
		w.sick(plans.Source, 0)
		p := carried(t, w, r, e)
		p.after(time.Second)
		p.down.Store(true)
		close(p.stop)
		if got, over := p.after(time.Minute); !over || got.err != engine.ErrStopped { //nolint:errorlint // nothing joined to it
			t.Fatalf("%+v", got)
		}
	})
}

// tight returns in how many of some seconds the budgets leave no room, and how the process has ended by then, as after.
func (p *running) tight(seconds int) (tight int, got ended, over bool) {
	for n := 0; n < seconds && !over; n++ {
		p.w.rest()
		if p.w.room() == 0 {
			tight++
		}
		got, over = p.after(time.Second)
	}
	return tight, got, over
}

// While the other cluster does not bind the claim of a wave, the wave is up and the budgets are open: they are tightened
// again once the claim is bound. A claim that is not bound in time is the reason why the plan is blocked.
func TestAWaveWaitsForItsBinderUnderOpenBudgets(t *testing.T) {
	for _, never := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(threeOrdinals(plans.Reimport))
			r, e := w.begin(t, plans.Move)
			w.until(t, r, e, plans.Protect)
			w.unbound = w.on[plans.Destination].name
			p := carried(t, w, r, e)
			lasts := 5 * 60
			if never {
				lasts = 12 * 60
			}
			tight, got, over := p.tight(lasts)
			w.unbound, w.quiet = "", 0
			if tight > 60 || p.errs > 0 || w.inFlight() {
				t.Errorf("the budgets were tight for %d seconds, with %d errors; in flight: %t", tight, p.errs, w.inFlight())
			}
			switch {
			case !never:
				if got = p.rests(t); got.Outcome != plans.Moved || got.err != nil {
					t.Errorf("%+v", got)
				}
			case !over || got.Kind != engine.Blocked || got.ID != reasons.BinderBehind || w.journal.BlockedID != got.ID:
				t.Errorf("%+v (%t), journal %q", got, over, w.journal.Blocked)
			}
			unbroken(t, w)
		})
	}
}
