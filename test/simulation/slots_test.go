package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A wave waits for its slot with its pods up, its budgets open and nothing of it begun. It keeps the slot for
// as long as the budgets are tight.
func TestAWaveWaitsForItsSlot(t *testing.T) {
	t.Parallel()
	overlapping := overlapping{}
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(sc)
			w.evictions = 20
			slots := wavelimit.New(1)
			overlapping.slot = slots.Of(w.plan)
			overlapping.slot.Acquire()
			for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
				overlapping.waited = 0
				r, e := w.begin(t, direction)
				e.Permit, e.Now = slots.Of(w.plan), func() time.Time { return time.Unix(1e9, 0) }
				rounds := 0
				for p := (engine.Progress{}); p.Kind != engine.Finished; rounds++ {
					var err error
					if p, err = e.Advance(t.Context()); err != nil || p.Kind == engine.Blocked || rounds > 5000 {
						t.Fatalf("%+v: %v", p, err)
					}
					w.others(r, p.Kind)
					overlapping.sees(t, w, p)
				}
				if overlapping.waited < 3 || !overlapping.slot.Acquire() {
					t.Fatalf("waited %d times; the slot is free at the end: %t", overlapping.waited, overlapping.slot.Acquire())
				}
				unbroken(t, w)
			}
		})
	}
	if overlapping.blocked == 0 {
		t.Error("no wave had to wait for other pods")
	}
}

// overlapping competes for the same slot, and has it first.
type overlapping struct {
	slot            *wavelimit.Permit
	waited, blocked int // how often the plan waited for the slot, and for other pods
}

func (v *overlapping) sees(t *testing.T, w *world, p engine.Progress) {
	t.Helper()
	under := w.underWay(p.Step)
	switch {
	case p.Queued && p.Step.Seq <= w.journal.Begun:
		t.Fatalf("it waits with a wave under way: %+v", p)
	case p.Queued:
		if v.waited++; v.waited == 3 {
			v.slot.Release()
		}
	case p.Kind == engine.Waiting && p.Step.Op == plans.Tighten && !under:
		if v.blocked++; !v.slot.Acquire() {
			t.Fatalf("a wave that cannot begin keeps its slot: %+v", p)
		}
		v.slot.Release()
	case under && v.waited == 0:
		t.Fatalf("a wave has begun while another has the slot: %+v", p)
	case under && p.Step.Op != plans.Relax:
		if v.slot.Acquire() {
			t.Fatalf("its slot is free: %+v", p)
		}
		v.slot.Release()
	}
}

// underWay reports whether the step belongs to a wave whose budgets are tight.
func (w *world) underWay(s plans.Step) bool {
	return w.journal.TightSince != nil && w.journal.Done < s.Seq && s.Seq <= w.journal.Begun
}

// A process that waits for a slot is not held for the time of the wait. It obeys a pause at once, and
// continues as soon as a slot is free.
func TestWhoWaitsForASlotHearsOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(threeOrdinals(modes()[0]))
		slots := wavelimit.New(1)
		other := slots.Of(w.plan)
		q := &queueing{w: w, slots: slots, asked: make(chan struct{}, 1)}
		other.Retain(plans.Source)
		over := q.run(t)
		for range 60 { // ten minutes
			<-time.After(10 * time.Second)
			synctest.Wait()
			w.rest()
		}
		if !q.last.Queued || time.Since(q.since) < 8*time.Minute {
			t.Fatalf("%+v, for %s", q.last, time.Since(q.since))
		}
		at := time.Now()
		w.pause(t, true)
		q.asked <- struct{}{}
		if p := <-over; p.Kind != engine.Paused || time.Since(at) > time.Second {
			t.Fatalf("%+v after %s", p, time.Since(at))
		}
		w.pause(t, false)
		over = q.run(t)
		synctest.Wait()
		if !q.last.Queued {
			t.Fatalf("%+v", q.last)
		}
		other.Release()
		if synctest.Wait(); q.last.Queued {
			t.Fatalf("there is room, and it is still %+v", q.last)
		}
		for p := (engine.Progress{}); p.Outcome != plans.Moved; w.rest() {
			select {
			case p = <-over:
			case <-time.After(time.Second):
				synctest.Wait()
			}
		}
		unbroken(t, w)
	})
}

// queueing is a process that waits for a slot.
type queueing struct {
	w     *world
	slots *wavelimit.Limiter
	asked chan struct{}
	last  engine.Progress
	since time.Time // when it began to wait
}

func (q *queueing) run(t *testing.T) <-chan engine.Progress {
	t.Helper()
	_, e := q.w.begin(t, plans.Move)
	e.Permit, e.Now = q.slots.Of(q.w.plan), time.Now
	over := make(chan engine.Progress)
	go func() {
		p, err := e.Run(t.Context(), engine.Options{
			Wake: clusters.NewChangeSignal(), Asked: q.asked, StepTimeout: 2 * time.Minute,
			Report: func(p engine.Progress, err error) {
				if q.last = p; err != nil {
					t.Error(err)
				}
				if p.Queued {
					q.since = time.Now()
				}
			},
		})
		if err != nil {
			t.Error(err)
		}
		over <- p
	}()
	return over
}
