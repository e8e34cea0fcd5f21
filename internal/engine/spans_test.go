package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// hand is a clock that a test sets by hand.
type hand struct{ now time.Time }

func (h *hand) at() time.Time { return h.now }

func (h *hand) passes(d time.Duration) { h.now = h.now.Add(d) }

// onTheWay makes the journal that of a wave which has left at a time, and whose pod is to come up since then.
func onTheWay(step plans.Step, since time.Time) func(*journal.Journal) {
	return func(j *journal.Journal) {
		j.Done, j.Begun = step.Seq-1, step.Seq
		j.Leave(since)
		j.Enter(plans.Attaching, since)
	}
}

// A process that ends, or dies, while a wave is away leaves it to nobody. The next one does not book that time as the work
// of the clusters, and believes a pod that came up meanwhile when it did.
func TestTheTimeBetweenTwoProcessesIsNobodys(t *testing.T) {
	for name, c := range map[string]struct {
		ends           bool          // and says so
		sign           time.Duration // the last sign of the process in its Lease; 0 for none
		ready          time.Duration // when the pod said that it became Ready; 0 if it is Ready only after the takeover
		attach, nobody time.Duration
	}{
		"it has said that it ends":                    {true, 0, 0, 5*time.Second + time.Second, 45 * time.Second},
		"it has died":                                 {false, 7 * time.Second, 0, 7*time.Second + time.Second, 43 * time.Second},
		"the pod came up meanwhile":                   {true, 0, 8 * time.Second, 8 * time.Second, 0},
		"the pod came up before, by another clock":    {true, 0, 2 * time.Second, 5 * time.Second, 0},
		"the pod comes up later, by a clock far back": {true, 0, -time.Hour, 5 * time.Second, 0},
	} {
		clock := &hand{time.Unix(1000, 0)}
		began := clock.now
		saw := plans.Wait(reasons.PodNotReady, "waits").In(plans.Attaching)
		e, step := scripted(t, plans.Grow, func(context.Context, plans.StepContext) (plans.Observation, error) { return saw, nil })
		changed(t, e, onTheWay(step, began))
		e.Now = clock.at
		if _, err := e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.passes(5 * time.Second)
		if c.ends {
			if err := e.stopping.recordEnd(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		clock.passes(45 * time.Second)
		next := New(e.plan, e.store, e.on)
		next.Now, next.observer.looks, next.Permit = clock.at, e.observer.looks, e.Permit
		if c.sign != 0 {
			next.Sign = began.Add(c.sign)
		}
		if err := next.TakeOver(t.Context(), plans.Move); err != nil {
			t.Fatal(err)
		}
		if c.ready == 0 {
			if _, err := next.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.passes(time.Second)
		}
		saw = plans.Done()
		saw.Available = began.Add(c.ready)
		if c.ready == 0 {
			saw.Available = clock.now
		}
		p, err := next.Advance(t.Context())
		if err != nil || p.Took == nil {
			t.Fatalf("%s: %+v, %v", name, p, err)
		}
		if took := *p.Took; took[plans.Attaching] != c.attach || took[plans.Unattended] != c.nobody || took[plans.Detaching]+took[plans.HandingOver]+took[plans.Terminating] != 0 {
			t.Errorf("%s: %v, expected %s to come up, and %s for nobody", name, took, c.attach, c.nobody)
		}
	}
}

// A pod is Ready since it says so, and not since a process looks: but not before the last look at which it was not.
func TestAWaveArrivesWhenItsPodIsReady(t *testing.T) {
	for name, c := range map[string]struct{ said, want time.Duration }{
		"a moment ago":              {29 * time.Second, 29 * time.Second},
		"by a clock that is behind": {4 * time.Second, 20 * time.Second},
		"by a clock that is ahead":  {time.Hour, 30 * time.Second},
	} {
		clock := &hand{time.Unix(1000, 0)}
		began := clock.now
		saw := plans.Wait(reasons.PodNotReady, "waits").In(plans.Attaching)
		e, step := scripted(t, plans.Grow, func(context.Context, plans.StepContext) (plans.Observation, error) { return saw, nil })
		changed(t, e, onTheWay(step, began))
		e.Now = clock.at
		clock.passes(20 * time.Second)
		if _, err := e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.passes(10 * time.Second)
		saw = plans.Done()
		saw.Available = began.Add(c.said)
		p, err := e.Advance(t.Context())
		if err != nil || p.Took == nil || (*p.Took)[plans.Attaching] != c.want {
			t.Errorf("%s: %+v, %v, expected %s", name, p.Took, err, c.want)
		}
		if want := "the first took " + plans.Brief(c.want) + ", so about " + plans.Brief(2*c.want) + " left"; p.Forecast != want {
			t.Errorf("%s: %q, expected %q", name, p.Forecast, want)
		}
	}
}

// A wave whose write was refused has not left: nobody who reads the journal sees an ordinal down, also after the plan turned.
func TestAWaveThatWasRefusedIsNotAway(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "statefulsets"}, "web", errors.New("a webhook says no"))
	for name, c := range map[string]struct {
		answer error
		away   bool
	}{
		"refused":                      {refused, false},
		"made":                         {nil, true},
		"the answer was lost":          {errors.New("connection reset"), true},
		"the server could not tell":    {apierrors.NewInternalError(errors.New("etcd")), true},
		"the object has changed since": {apierrors.NewConflict(schema.GroupResource{Resource: "statefulsets"}, "web", errors.New("changed")), false},
	} {
		clock := &hand{time.Unix(1000, 0)}
		e, _ := scripted(t, plans.Shrink, func(context.Context, plans.StepContext) (plans.Observation, error) {
			return plans.Write("shrink", plans.Undo{}, func(context.Context) error { return c.answer }), nil
		})
		e.Now = clock.at
		_, _ = e.Advance(t.Context())
		if got := e.journal == nil || !e.journal.Left().IsZero(); got != c.away {
			t.Errorf("%s: away %t, expected %t", name, got, c.away)
		}
		e.journal = nil // as after a long wait
		if err := e.recall(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := !e.journal.Left().IsZero(); got != c.away {
			t.Errorf("%s: away %t once the journal is read again, expected %t", name, got, c.away)
		}
	}
}

// On the way back a wave that never left passes its steps at once, and has no downtime.
func TestAWaveThatNeverLeftArrivesWithoutDowntime(t *testing.T) {
	clock := &hand{time.Unix(1000, 0)}
	e, step := scripted(t, plans.Shrink, see(plans.Done()))
	e.Now = clock.at
	changed(t, e, func(j *journal.Journal) { j.Begun = step.Seq; j.Leave(clock.now) })
	clock.passes(69 * time.Second)
	if err := e.TakeOver(t.Context(), plans.Abort); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p, err := e.Advance(t.Context())
		if err != nil || p.Took != nil {
			t.Fatalf("%+v, %v", p, err)
		}
		if p.Kind != Advanced {
			break
		}
	}
	if j := stored(t, e); j.Downtime != nil || len(j.Timeline.Waves) != 0 {
		t.Errorf("%+v, %+v", j.Downtime, j.Timeline.Waves)
	}
}

// A process that is stopped, or whose machine sleeps, carries nothing on either, and does not know it until it wakes.
func TestTheTimeOfASleepIsNobodys(t *testing.T) {
	began := time.Now() //nolint:forbidigo // a time of a bubble has no monotonic clock
	for name, c := range map[string]struct {
		wall   bool // only the wall clock goes on while a machine sleeps
		sleeps time.Duration
		nobody bool
	}{
		"a machine that sleeps":   {true, time.Hour, true},
		"a process that stops":    {false, time.Hour, true},
		"a machine that is busy":  {false, 5 * time.Second, false},
		"a machine that is awake": {false, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			saw := plans.Wait(reasons.VolumeAttached, "waits").In(plans.Detaching)
			e, step := scripted(t, plans.Vacate, func(context.Context, plans.StepContext) (plans.Observation, error) { return saw, nil })
			slept, bubble := time.Duration(0), time.Now() //nolint:forbidigo // the clock of the bubble
			e.Now = func() time.Time {
				at := began.Add(time.Since(bubble))
				if c.wall {
					return wallSet(at, int64(slept.Seconds()))
				}
				return at.Add(slept)
			}
			changed(t, e, func(j *journal.Journal) {
				j.Begun = step.Seq
				j.Leave(began)
				j.Enter(plans.Detaching, began)
			})
			stop := make(chan struct{})
			over := carried(t, e, nil, stop)
			synctest.Wait()
			slept = c.sleeps
			close(stop)
			<-over
			if e.journal == nil {
				t.Fatal("no journal")
			}
			w := e.journal.Stopwatch
			if got := len(w.Gaps) > 0; got != c.nobody || got && w.Gaps[0].Seconds != c.sleeps.Seconds() {
				t.Errorf("%s: %+v", name, w)
			}
		})
	}
}
