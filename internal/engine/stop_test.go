package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// ran is how a Run has ended.
type ran struct {
	p   Progress
	err error
}

// atFixedTime is a clock that stands still.
func atFixedTime() time.Time { return time.Unix(1000, 0) }

// carried runs an engine beside the test.
func carried(t *testing.T, e *Engine, finish, stop <-chan struct{}) <-chan ran {
	t.Helper()
	out := make(chan ran, 1)
	go func() {
		p, err := e.Run(t.Context(), Options{
			Wake: clusters.NewChangeSignal(), Finish: finish, Stop: stop, StepTimeout: time.Hour,
			Report: func(Progress, error) {},
		})
		out <- ran{p, err}
	}()
	return out
}

// A run that is to end does so at once where nothing is in flight, whatever it waits for, and with a wave in flight when
// that has arrived. It begins no other wave, and what it has seen is recorded.
func TestARunThatIsToEndFinishesTheWaveInFlight(t *testing.T) {
	for name, c := range map[string]struct {
		at     plans.Op
		began  bool
		before string // the step before which it stops
	}{
		"before the first write":              {plans.Freeze, false, "Freeze"},
		"in the middle of what moves nothing": {plans.Freeze, true, "Freeze"},
		"before a wave":                       {plans.Tighten, false, "web-2 Tighten"},
		"with tight budgets":                  {plans.Tighten, true, "web-2 Tighten"},
		"before the wave leaves":              {plans.Shrink, false, "web-2 Tighten"},
		"when it leaves":                      {plans.Shrink, true, "web-1 Tighten"},
		"between the sides":                   {plans.Vacate, true, "web-1 Tighten"},
		"when it comes up":                    {plans.Grow, true, "web-1 Tighten"},
		"before the budgets are opened":       {plans.Relax, false, "web-1 Tighten"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var comes atomic.Bool
			e, step := scripted(t, plans.Freeze, func(context.Context, plans.StepContext) (plans.Observation, error) {
				if !comes.Load() {
					return plans.Wait(reasons.PodNotReady, "waits"), nil
				}
				return plans.Done(), nil
			})
			for step.Op != c.at {
				step, _ = e.plan.Step(journal.New(e.plan).Leg, step.Seq+1)
			}
			changed(t, e, func(j *journal.Journal) {
				j.Done, j.Begun = step.Seq-1, step.Seq-1
				if c.began {
					j.Begun = step.Seq
				}
			})
			e.way.look = see(plans.Done())
			e.Now = atFixedTime
			finish, stop := make(chan struct{}), make(chan struct{})
			over := carried(t, e, finish, stop)
			synctest.Wait()
			close(finish)
			synctest.Wait()
			flies := strings.HasPrefix(c.before, "web-1")
			select {
			case got := <-over:
				if flies {
					t.Fatalf("%s: it ends with %+v, and the wave is in flight", name, got)
				}
				ended(t, name, e, got, c.before)
				return
			default:
			}
			if !flies {
				t.Errorf("%s: it goes on, and nothing is in flight", name)
			}
			comes.Store(true)
			ended(t, name, e, <-over, c.before)
			close(stop)
		})
	}
}

// ended checks that a run has ended with nothing in flight, and that the journal says so.
func ended(t *testing.T, name string, e *Engine, got ran, before string) {
	t.Helper()
	if !errors.Is(got.err, ErrStopped) || got.p.Kind != Stopped || got.p.Reason != "stopped before "+before+"; no ordinal is in flight" {
		t.Errorf("%s: %+v, %v", name, got.p, got.err)
	}
	j := stored(t, e)
	step, began, _ := j.Next(e.plan)
	events := j.Timeline.Events
	if e.StepOf(step) != before || j.Paused || began && step.Moves() && step.Op != plans.Tighten {
		t.Errorf("%s: the journal is at %s (begun %t), paused %t", name, e.StepOf(step), began, j.Paused)
	}
	if len(events) != 1 || events[0].Kind != journal.RunStopped || !strings.Contains(events[0].What, "before "+before) {
		t.Errorf("%s: recorded %+v", name, events)
	}
	if moved, flying := j.Places(e.plan); flying != 0 {
		t.Errorf("%s: %d moved, %d in flight", name, moved, flying)
	}
}

// The second signal does not wait for the wave. The journal says where the run has ended.
func TestARunThatIsToEndNowLeavesTheWave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, step := scripted(t, plans.Vacate, see(plans.Wait(reasons.PodLeaving, "waits")))
		changed(t, e, func(j *journal.Journal) { j.Begun = step.Seq })
		e.way.look, e.Now = see(plans.Done()), atFixedTime
		finish, stop := make(chan struct{}), make(chan struct{})
		over := carried(t, e, finish, stop)
		synctest.Wait()
		close(finish)
		synctest.Wait()
		close(stop)
		got := <-over
		if !errors.Is(got.err, ErrStopped) || got.p.Kind == Stopped {
			t.Errorf("%+v, %v", got.p, got.err)
		}
		if events := stored(t, e).Timeline.Events; len(events) != 1 || events[0].Kind != journal.RunStopped || events[0].What != "at web-2 Vacate" {
			t.Errorf("recorded %+v", events)
		}
	})
}

// silent is an API server that does not answer.
type silent struct {
	client.Client
	err error
}

func (s silent) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return s.err
}

// An API server that does not answer keeps a run from ending only while a wave is in flight, also one that it was in when
// the run began.
func TestAnOutageKeepsOnlyAWaveInFlightFromEnding(t *testing.T) {
	for at, flies := range map[plans.Op]bool{plans.Tighten: false, plans.Claim: true} {
		synctest.Test(t, func(t *testing.T) {
			e, step := scripted(t, at, see(plans.Done()))
			changed(t, e, func(j *journal.Journal) { j.Begun = step.Seq })
			away := errors.New("no route to host")
			for side, on := range e.on {
				e.on[side] = silent{on, away}
			}
			if err := e.TakeOver(t.Context(), plans.Move); !errors.Is(err, away) {
				t.Fatal(err)
			}
			for k := range e.observer.looks {
				e.observer.looks[k] = func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Observation{}, away }
			}
			e.way.look = e.observer.looks[plans.Tighten]
			finish, stop := make(chan struct{}), make(chan struct{})
			over := carried(t, e, finish, stop)
			synctest.Wait()
			close(finish)
			<-time.After(time.Minute)
			synctest.Wait()
			select {
			case got := <-over:
				if flies || got.p.Kind != Stopped || !errors.Is(got.err, ErrStopped) {
					t.Errorf("at %s: %+v, %v", at, got.p, got.err)
				}
			default:
				if !flies {
					t.Errorf("at %s: it goes on", at)
				}
				close(stop)
				<-over
			}
		})
	}
}
