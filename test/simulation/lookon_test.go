package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// lasts lets time pass, in which the controllers of the world act. It returns what after does.
func (p *running) lasts(d time.Duration) (got ended, over bool) {
	for range d / (10 * time.Second) {
		p.w.rest()
		if got, over = p.after(10 * time.Second); over {
			return got, over
		}
	}
	return got, over
}

// lateWorld is a world in which a plan is blocked, under an orchestrator, only because an ordinal that is not of the wave has
// been down for too long.
func lateWorld(t *testing.T, w *world, direction plans.Direction) (p *running, mend func()) {
	t.Helper()
	r, e := w.begin(t, plans.Move)
	if direction == plans.Move {
		w.until(t, r, e, plans.Grow)
		w.until(t, r, e, plans.Tighten)
		w.rest()
		mend = w.sick(plans.Source, 0)
	} else {
		walk(t, w, plans.Move, nil)
		r, e = w.begin(t, direction)
		mend = w.sick(plans.Destination, 2)
	}
	p = carriedAs(t, w, r, e, true)
	if got, over := p.lasts(stepTimeout + time.Minute); over || !w.journal.LooksOn() {
		t.Fatalf("%+v (%t), blocked because %q; last %+v", got, over, w.journal.Blocked, p.last)
	}
	w.atRest(t)
	return p, mend
}

// atRest requires that nothing of a wave is prepared: the budgets are open, no set is pinned, and every ordinal is up.
func (w *world) atRest(t *testing.T) {
	t.Helper()
	w.rest()
	if w.room() == 0 || w.inFlight() || w.pinned() > 0 {
		t.Errorf("room for %d, in flight %t, %d sets are pinned", w.room(), w.inFlight(), w.pinned())
	}
	unbroken(t, w)
}

// A plan that is blocked only because a wait was too long continues by itself when that has ended, both ways, within one
// cluster and between two, however long it takes, in spite of an outage, and in the next process.
func TestABlockedPlanGoesOnWhenItsWaitHasEnded(t *testing.T) {
	for name, o := range map[string]options{"one cluster": threeOrdinals(plans.Rebind), "two clusters": apart(threeOrdinals(plans.Reimport))} {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, dies := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(o)
					p, mend := lateWorld(t, w, direction)
					if _, over := p.lasts(5 * stepTimeout); over || !w.journal.LooksOn() {
						t.Fatalf("%s, %s: it looks no more: %q", name, direction, w.journal.Blocked)
					}
					w.atRest(t)
					p.down.Store(true)
					p.after(2 * stepTimeout)
					p.down.Store(false)
					if dies {
						close(p.stop)
						p.after(time.Minute)
						why := w.journal.Blocked
						r, e := w.begin(t, plans.Move)
						p = carriedAs(t, w, r, e, true)
						if _, over := p.lasts(time.Minute); over || !w.journal.LooksOn() || w.journal.Blocked != why {
							t.Fatalf("%s, %s: the next process forgets it: %q", name, direction, w.journal.Blocked)
						}
					}
					w.atRest(t)
					mend()
					want := map[plans.Direction]plans.Outcome{plans.Move: plans.Moved, plans.Abort: plans.Aborted}[direction]
					if got := p.rests(t); got.Outcome != want || got.err != nil || w.journal.Blocked != "" {
						t.Errorf("%s, %s: %+v, blocked %q", name, direction, got, w.journal.Blocked)
					}
					unbroken(t, w)
				})
			}
		}
	}
}

// Of two processes that look on, the one that has taken the plan over lets it go on, and the other one ends.
func TestOneOfTwoProcessesLetsABlockedPlanGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(apart(threeOrdinals(plans.Reimport)))
		first, mend := lateWorld(t, w, plans.Move)
		r, e := w.begin(t, plans.Move)
		second := carriedAs(t, w, r, e, true)
		second.after(time.Second)
		mend()
		w.rest()
		if got, over := first.lasts(2 * time.Minute); !over || !got.Overtaken {
			t.Errorf("the first one: %+v (%t)", got, over)
		}
		if got := second.rests(t); got.Outcome != plans.Moved || got.err != nil {
			t.Errorf("the second one: %+v", got)
		}
		unbroken(t, w)
	})
}

// What the user decides while a plan is blocked comes first, also where its reason ends at the same moment.
func TestAPauseOfABlockedPlanWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(apart(threeOrdinals(plans.Reimport)))
		p, mend := lateWorld(t, w, plans.Move)
		w.change(t, func(j *journal.Journal) error { j.Paused = true; return nil })
		mend()
		w.rest()
		if got, over := p.lasts(2 * time.Minute); !over || got.Kind != engine.Paused || w.journal.Blocked != "" {
			t.Errorf("%+v (%t), blocked %q", got, over, w.journal.Blocked)
		}
		w.atRest(t)
	})
}

// While a plan is blocked that continues by itself, the nodes of both sides can be drained, as while it is at rest (L5).
func TestNodesAreDrainedWhileABlockedPlanLooksOn(t *testing.T) {
	for _, side := range plans.Sides() {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(oneByOne(plans.Rebind))
			r, e := w.begin(t, plans.Move)
			w.until(t, r, e, plans.Grow)
			w.until(t, r, e, plans.Tighten)
			w.rest()
			snapshot := finalized(plans.Source)
			w.foreign = true
			snapshot.do(w)
			p := carriedAs(t, w, r, e, true)
			if got, over := p.lasts(stepTimeout + time.Minute); over || !w.journal.LooksOn() || w.journal.BlockedID != reasons.ClaimKept {
				t.Fatalf("%+v (%t), blocked because %q; last %+v", got, over, w.journal.Blocked, p.last)
			}
			old := w.drain(side, w.slice(side).Start, drainsOf()["cordoned"])
			p.lasts(5 * time.Minute) // what the process notices without a signal takes half a minute
			w.gone(t, side, old)
			if !w.journal.LooksOn() {
				t.Error("a drain lets a blocked plan go on")
			}
			unbroken(t, w)
			snapshot.undo(w)
			if got := p.rests(t); got.Outcome != plans.Moved || got.err != nil {
				t.Errorf("%+v", got)
			}
			unbroken(t, w)
		})
	}
}
