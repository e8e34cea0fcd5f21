package simulation

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// change writes to the journal as a user's command does.
func (w *world) change(t *testing.T, what func(*journal.Journal) error) {
	t.Helper()
	home := records.NewStore(w.on[plans.Destination], green, planName)
	if err := home.Change(t.Context(), w.plan, what); err != nil {
		t.Fatal(err)
	}
}

// pause requests a pause, or the end of it.
func (w *world) pause(t *testing.T, yes bool) {
	t.Helper()
	w.change(t, func(j *journal.Journal) error { j.Paused = yes; return nil })
}

func TestAPauseTakesEffectWithNoOrdinalInFlight(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		first := newWorld(sc)
		want := goldenOf(t, first.fork(0), journey{plans.Move})
		for n := range want.writes {
			if !shareOf(name).plays(n) {
				continue
			}
			w := first.fork(uint64(n))
			dieAt(t, w, n, crashAfter)
			w.pause(t, true)
			got, err := w.process().run(t.Context(), plans.Move, nil)
			if err != nil || got.kind != engine.Paused && got.kind != engine.Finished {
				t.Fatalf("%s, write %d: ended with %q (%v), want a pause", name, n, got, err)
			}
			if a, b := w.slice(plans.Source), w.slice(plans.Destination); a.Start+a.Replicas != b.Start {
				t.Errorf("%s, write %d: paused with %s and %s", name, n, a, b)
			}
			w.pause(t, false)
			walk(t, w, plans.Move, nil)
			w.rest()
			unbroken(t, w)
		}
	}
}

// A pause that is requested at any moment of any direction takes effect where nothing is in flight. This
// includes a wave that has tightened the budgets and waits; the budgets are opened then. After the request no
// ordinal goes down, except those of the step under way. The journal reports a pause only when the plan is
// paused.
func TestAPauseAtAnyMomentIsHeeded(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
			t.Run(name+", "+string(direction), func(t *testing.T) {
				t.Parallel()
				first := newWorld(sc)
				if direction == plans.Finalize {
					walk(t, first, plans.Move, nil)
				}
				whole := first.fork(0)
				if direction == plans.Abort { // from the middle of a wave, which is on neither side
					_, err := whole.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
						return p.Kind == engine.Advanced && p.Step.Op == plans.Release && p.Step.Ordinals.Has(1)
					})
					if err != nil {
						t.Fatal(err)
					}
					first = whole.fork(0)
				}
				moments := 0
				if _, err := whole.process().run(t.Context(), direction, func(engine.Progress) bool { moments++; return false }); err != nil {
					t.Fatal(err)
				}
				for at := 1; at < moments; at += 1 + moments/60 {
					if !fifth.plays(at / (1 + moments/60)) {
						continue
					}
					pausedAt(t, first.fork(uint64(at)), direction, at)
					if t.Failed() {
						t.Fatalf("that was: asked for at moment %d of %d", at, moments)
					}
				}
			})
		}
	}
}

// pausedAt requests a pause after this number of passes.
func pausedAt(t *testing.T, w *world, direction plans.Direction, at int) {
	t.Helper()
	passes, under := 0, plans.Step{} // the step that was under way, if known
	got, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
		switch passes++; {
		case passes < at:
		case passes == at:
			if w.pause(t, true); p.Kind != engine.Advanced {
				under = p.Step
			}
		case p.Kind == engine.Wrote && p.Step.Op == plans.Shrink && under.Seq != p.Step.Seq && under.Op != "":
			t.Errorf("%s: %s goes down after the pause was asked for at %s", p.Kind, p.Step.ID(), under.ID())
		case w.journal.AtRest(w.plan) && p.Kind != engine.Paused && passes > at+1:
			t.Errorf("it is said to be paused, and goes on: %+v", p)
		}
		return false
	})
	if err != nil || got.kind != engine.Paused && got.kind != engine.Finished {
		t.Fatalf("ended with %q (%v), expected a pause", got, err)
	}
	if got.kind == engine.Paused {
		paused(t, w, direction)
		w.pause(t, false)
		walk(t, w, direction, nil)
	}
	w.rest()
	unbroken(t, w)
}

// paused requires a world in which nothing is in flight, and open budgets.
func paused(t *testing.T, w *world, direction plans.Direction) {
	t.Helper()
	if a, b := w.slice(plans.Source), w.slice(plans.Destination); a.End() != b.Start {
		t.Errorf("paused with %s and %s", a, b)
	}
	if work := records.State(w.plan, &w.journal, ""); work != "Paused" {
		t.Errorf("paused, and the state is %s", work)
	}
	w.rest()
	open := w.allowed(plans.Source) + w.allowed(plans.Destination)
	if open != w.plan.MaxUnavailable && w.journal.Done > int(w.plan.Count)+1 && direction != plans.Finalize {
		t.Errorf("paused, and the budgets allow %d, expected %d", open, w.plan.MaxUnavailable)
	}
}

// A wave that waits for another pod obeys a pause, before and after its budgets were eased. A route can be
// set there too.
func TestAPauseIsHeededByAWaveThatWaits(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		for _, after := range []plans.Op{plans.Relax, plans.Tighten} {
			for _, eased := range []bool{false, true} {
				w := newWorld(apart(sc))
				r, e := w.begin(t, plans.Move)
				e.Now = w.clock
				w.until(t, r, e, plans.Relax)
				if after == plans.Tighten {
					w.until(t, r, e, plans.Tighten)
				}
				w.rest()
				mend := w.sick(plans.Destination, sc.Ordinals-1) // not part of any later wave
				for range 5 {
					if _, err := e.Advance(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if eased {
					if err := e.Ease(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				w.pause(t, true)
				_, e = w.begin(t, plans.Move) // a process that reads the journal afresh
				e.Now = w.clock
				var p engine.Progress
				for range 10 {
					var err error
					if p, err = e.Advance(t.Context()); err != nil {
						t.Fatal(err)
					}
					w.rest()
				}
				if state := records.State(w.plan, &w.journal, "me"); p.Kind != engine.Paused || state != "Paused" || w.journal.TightSince != nil {
					t.Errorf("%s, after %s, eased %t: %+v; state %s; tight %v", name, after, eased, p, state, w.journal.TightSince)
				}
				until := int32(1)
				w.take(t, plans.Limits{Until: &until})
				mend()
				w.rest()
				w.foreign = false
				w.pause(t, false)
				w.goes(t, engine.Finished, plans.Split, until)
			}
		}
	}
}
