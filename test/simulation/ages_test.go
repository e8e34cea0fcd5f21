package simulation

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// agrees advances a direction until the gates of its first wave have passed. The wave has not left then.
func (w *world) agrees(t *testing.T, direction plans.Direction) (*process, *engine.Engine) {
	t.Helper()
	r, e := w.begin(t, direction)
	w.until(t, r, e, plans.Quiesce)
	return r, e
}

// goesOn advances a process until the wave has left, the plan is blocked, or nothing changes any more.
func (w *world) goesOn(t *testing.T, r *process, e *engine.Engine) (p engine.Progress) {
	t.Helper()
	for quiet := 0; quiet < 40; quiet++ {
		var err error
		r.tell()
		if p, err = e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Kind == engine.Blocked || p.Kind == engine.Paused || p.Kind == engine.Advanced && p.Step.Op == plans.Shrink {
			return p
		}
		if w.others(r, p.Kind) || p.Kind == engine.Wrote || p.Kind == engine.Advanced {
			quiet = 0
		}
	}
	return p
}

// first returns the first wave of a direction in a world of three, and the side that it leaves.
func first(direction plans.Direction) (ordinal, other int32, side plans.Side) {
	if direction == plans.Abort {
		return 0, 2, plans.Destination
	}
	return 2, 0, plans.Source
}

// A gate has passed, and then something happens that makes its yes worth nothing, while the application changes its
// mind. It is asked again before the ordinal leaves, and heard, whoever goes on: the same process or another one.
func TestAGateThatChangesItsMindIsHeard(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range doubts() {
		for _, mode := range modes() {
			for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
				for _, by := range []string{"the same process", "another process", "another process, days later"} {
					if name == "days pass" && by != "another process, days later" {
						continue
					}
					for _, deaf := range []string{"drain", "backup"} {
						t.Run(fmt.Sprintf("%s, %s, %s, %s, %s says no", name, mode, direction, by, deaf), func(t *testing.T) {
							t.Parallel()
							for seed := range uint64(3) {
								w := newWorld(withGates(threeOrdinals(mode))).fork(seed)
								hearsNo(t, w, direction, deaf, by, meanwhile)
							}
						})
					}
				}
			}
		}
	}
}

// doubt is what happens after a gate has passed. It is about an ordinal of a side that does not leave next.
type doubt func(t *testing.T, w *world, r *process, e *engine.Engine, side plans.Side, other int32)

// doubts are the ways in which a yes becomes worth nothing.
func doubts() map[string]doubt {
	return map[string]doubt{
		"an ordinal fails, the budgets are opened, and it is back": func(t *testing.T, w *world, r *process, e *engine.Engine, side plans.Side, other int32) {
			t.Helper()
			w.crash(side, other)
			w.tellAll(r)
			for range 10 {
				if _, err := e.Advance(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.rest()
			}
			if err := e.Ease(t.Context()); err != nil {
				t.Fatal(err)
			}
			must(w.on[side].Delete(context.Background(), clone(w.pod(side, other))))
			w.crashing = nil
			w.rest()
		},
		"an ordinal fails and is back before anybody has looked": func(t *testing.T, w *world, _ *process, _ *engine.Engine, side plans.Side, other int32) {
			t.Helper()
			w.failsAndReturns(side, other)
		},
		"a pod is unready for a moment": func(t *testing.T, w *world, _ *process, _ *engine.Engine, side plans.Side, other int32) {
			t.Helper()
			w.blips(side, other)
		},
		"a pod that is unready when the wave would leave is back within the second": func(t *testing.T, w *world, r *process, e *engine.Engine, side plans.Side, other int32) {
			t.Helper()
			w.blinks(side, other, func() {
				w.tellAll(r)
				if p, err := e.Advance(t.Context()); err != nil || p.Kind != engine.Waiting || p.Step.Op != plans.Shrink || p.ID != reasons.OrdinalDown {
					t.Fatalf("%+v, %v", p, err)
				}
			})
		},
		"the budgets are opened": func(t *testing.T, _ *world, _ *process, e *engine.Engine, _ plans.Side, _ int32) {
			t.Helper()
			if err := e.Ease(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"the plan is paused": func(t *testing.T, w *world, r *process, e *engine.Engine, _ plans.Side, _ int32) {
			t.Helper()
			w.pause(t, true)
			e.Continue(w.journal.Epoch) // it reads the journal again
			if p := w.goesOn(t, r, e); p.Kind != engine.Paused {
				t.Fatalf("it is not paused: %+v", p)
			}
			w.pause(t, false)
			e.Continue(w.journal.Epoch)
		},
		"days pass": func(*testing.T, *world, *process, *engine.Engine, plans.Side, int32) {},
		"an outage of an hour": func(_ *testing.T, w *world, _ *process, _ *engine.Engine, _ plans.Side, _ int32) {
			w.app.clock = w.app.clock.Add(time.Hour)
		},
	}
}

// A yes that was said while an ordinal was down is about that time. When the ordinal is back, for the first time or once
// more, the application is asked again.
func TestAYesOfATimeWhenAnOrdinalWasDownDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, falls := range []bool{false, true} {
				for seed := range uint64(3) {
					w := newWorld(withGates(threeOrdinals(mode))).fork(seed)
					w.answersTooEarly(t, direction, falls)
					if t.Failed() {
						t.Fatalf("that was %s, %s, seed %d; it falls once more: %t", mode, direction, seed, falls)
					}
				}
			}
		}
	}
}

// answersTooEarly lets the application agree while an ordinal is down that comes back before any process looks again. falls
// reports that it has come back and failed before that.
func (w *world) answersTooEarly(t *testing.T, direction plans.Direction, falls bool) {
	t.Helper()
	if direction == plans.Abort {
		walk(t, w, plans.Move, nil)
		w.rest()
	}
	ordinal, other, side := first(direction)
	what := fmt.Sprintf("drain web-%d %s", ordinal, side)
	r, e := w.begin(t, direction)
	until := func(times int) {
		for range 400 {
			if w.app.yes[what] >= times {
				return
			}
			r.tell()
			if _, err := e.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.others(r, engine.Waiting)
		}
		t.Fatalf("%q was answered %d times", what, w.app.yes[what])
	}
	until(w.app.yes[what] + 1)
	w.foreign = true
	w.crash(side, other)
	w.tellAll(r)
	until(w.app.yes[what] + 1) // it is asked again, as the ordinal is down
	if falls {
		w.failsAndReturns(side, other)
		w.crash(side, other)
	}
	w.failsAndReturns(side, other)
	w.tellAll(r)
	asked := w.app.asked[what]
	w.app.deaf = what
	if p := w.goesOn(t, r, e); !w.slice(side).Has(ordinal) || w.app.asked[what] == asked {
		t.Errorf("%s %s %s: ordinal %d has left: %t", p.Kind, p.Step.ID(), p.Reason, ordinal, !w.slice(side).Has(ordinal))
	}
	unbroken(t, w)
	w.app.deaf = ""
	walk(t, w, direction, nil)
	w.rest()
	unbroken(t, w)
}

// The pod of a wave fails when its gates have passed, which the journal then records. They are asked again, and that is
// recorded again BEFORE they are asked (S10), also where the application is not there yet when the plan goes back to them.
func TestWhatIsAskedAgainIsRecordedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for seed := range uint64(3) {
				w := newWorld(withGates(threeOrdinals(mode))).fork(seed)
				if direction == plans.Abort {
					walk(t, w, plans.Move, nil)
					w.rest()
				}
				ordinal, _, side := first(direction)
				r, e := w.agrees(t, direction)
				w.foreign = true
				s := w.on[side]
				must(s.Delete(t.Context(), clone(w.pod(side, ordinal))))
				for w.pod(side, ordinal) != nil {
					w.kubelet(s)
				}
				waits := func(on plans.Op) {
					for range 20 {
						w.tellAll(r)
						if p, err := e.Advance(t.Context()); err != nil {
							t.Fatal(err)
						} else if p.Kind == engine.Waiting && p.Step.Op == on && p.ID != reasons.OrdinalDown {
							return
						}
					}
					t.Fatalf("%s, %s, seed %d: it does not wait at %s", mode, direction, seed, on)
				}
				waits(plans.Shrink) // for the disk
				if !w.stepIs(plans.Shrink) {
					t.Fatalf("%s, %s, seed %d: the journal is at %d", mode, direction, seed, w.journal.Done)
				}
				for w.attacher(s) {
				}
				waits(plans.Quiesce) // for the pod
				w.rest()
				if p := w.goesOn(t, r, e); w.slice(side).Has(ordinal) {
					t.Errorf("%s, %s, seed %d: %+v", mode, direction, seed, p)
				}
				unbroken(t, w)
			}
		}
	}
}

// failsAndReturns crashes an ordinal, and replaces its pod by one that serves.
func (w *world) failsAndReturns(side plans.Side, other int32) {
	w.crash(side, other)
	w.rest()
	must(w.on[side].Delete(context.Background(), clone(w.pod(side, other))))
	w.crashing = nil
	w.rest()
}

// hearsNo lets a gate pass and then become doubtful, and the application say no. The wave does not leave before the
// application agrees again.
func hearsNo(t *testing.T, w *world, direction plans.Direction, deaf, by string, meanwhile doubt) {
	t.Helper()
	if direction == plans.Abort {
		walk(t, w, plans.Move, nil)
		w.rest()
	}
	ordinal, other, side := first(direction)
	r, e := w.agrees(t, direction)
	w.foreign = true
	w.tellAll(r)
	meanwhile(t, w, r, e, side, other)
	w.tellAll(r)
	what := fmt.Sprintf("%s web-%d %s", deaf, ordinal, side)
	asked := w.app.asked[what]
	w.app.deaf = what
	if by != "the same process" {
		if by != "another process" {
			w.app.clock = w.app.clock.Add(72 * time.Hour)
		}
		r, e = w.begin(t, direction)
	}
	p := w.goesOn(t, r, e)
	if !w.slice(side).Has(ordinal) || w.app.asked[what] == asked {
		t.Fatalf("seed %d: %s %s %s: ordinal %d has left: %t, asked %d times before and %d in all", w.options.Seed, p.Kind, p.Step.ID(), p.Reason, ordinal, !w.slice(side).Has(ordinal), asked, w.app.asked[what])
	}
	unbroken(t, w)
	w.app.deaf = "" // it agrees
	walk(t, w, direction, nil)
	w.rest()
	unbroken(t, w)
}

// tellAll lets the watches of a process report everything.
func (w *world) tellAll(r *process) {
	for _, one := range r.untold {
		one.tell()
	}
	r.untold = nil
}

// An application that answers no whenever it is asked again is asked until it agrees, and every ordinal leaves on a yes.
func TestEveryOrdinalLeavesOnANewYes(t *testing.T) {
	t.Parallel()
	for name, sc := range map[string]options{"one at a time": threeOrdinals(plans.Rebind), "in waves, two clusters": inWaves(plans.Reimport)} {
		first := newWorld(withGates(sc))
		first.app.fickle = true
		done := first.fork(0)
		walk(t, done, plans.Move, nil)
		for n := range done.writes {
			for _, f := range []fault{crashAfter, refused409} {
				if !shareOf(name).plays(n) {
					continue
				}
				w := first.fork(uint64(n))
				walk(t, w, plans.Move, func(k int) fault {
					if k == n {
						return f
					}
					return ""
				})
				walk(t, w, plans.Abort, nil)
				if t.Failed() {
					t.Fatalf("%s, write %d, %s", name, n, f)
				}
			}
		}
	}
}

// A process dies when the departure of a wave is recorded, or its write is refused: the wave has not left. Days later
// the gates are asked again at that step, and the budgets stay tight meanwhile.
func TestADepartureThatWasOnlyRecordedIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, f := range []fault{crashBefore, refused409} {
			w := newWorld(withGates(threeOrdinals(mode)))
			r := w.process()
			r.at = func(int) fault {
				if r.now.kind == "StatefulSet" && w.departs() {
					w.app.deaf = "drain web-2"
					return f
				}
				return ""
			}
			end, err := r.run(t.Context(), plans.Move, func(engine.Progress) bool { return w.app.deaf != "" })
			if w.app.deaf == "" || !w.stepIs(plans.Shrink) || !w.slice(plans.Source).Has(2) {
				t.Fatalf("%s, %s: %v (%v): the wave does not wait at its Shrink", mode, f, end, err)
			}
			asked := w.app.asked["drain web-2 source"]
			next := w.process()
			got, err := next.run(t.Context(), plans.Move, nil)
			if got.kind != engine.Blocked || err != nil || !w.slice(plans.Source).Has(2) || w.app.asked["drain web-2 source"] == asked {
				t.Fatalf("%s, %s: %s (%v); ordinal 2 is there: %t", mode, f, got, err, w.slice(plans.Source).Has(2))
			}
			unbroken(t, w)
			w.skip(t) // of these gates, and not of the next step
			past := w.fork(2)
			past.app.deaf = "drain web-2"
			walk(t, past, plans.Move, nil)
			if past.app.yes["rejoin web-2 destination"] != 1 || past.app.asked["drain web-1 source"] == 0 {
				t.Errorf("%s, %s: --skip-gates skipped other gates", mode, f)
			}
		}
	}
}

// departs reports whether the departure of a wave is recorded, and is not done.
func (w *world) departs() bool {
	return w.journal.Done > 0 && w.journal.Begun > w.journal.Done && w.stepIs(plans.Shrink)
}

func (w *world) stepIs(op plans.Op) bool {
	step, _, _ := w.journal.Next(w.plan)
	return step.Op == op
}

// Nothing that a wave leaves on is in the journal, and what is there has a time.
func TestTheJournalKeepsNoYesWithoutATime(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(withGates(threeOrdinals(mode)))
		seen := false
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			if _, err := w.process().run(t.Context(), direction, func(engine.Progress) bool {
				p := w.journal.Passed
				if p == nil {
					return false
				}
				seen = true
				step, _ := w.plan.Step(w.journal.Leg, p.Seq)
				if step.Op == plans.Quiesce {
					t.Errorf("%s: %+v", step.ID(), p)
				}
				for i := range p.Gates {
					if p.When(i).IsZero() {
						t.Errorf("%s: %+v has no time", step.ID(), p)
					}
				}
				return t.Failed()
			}); err != nil {
				t.Fatal(err)
			}
		}
		if !seen {
			t.Error("no gate was recorded")
		}
		for _, s := range w.stores {
			if jobs := all[*batchv1.Job](s); len(jobs) > 0 {
				t.Errorf("%d Jobs are left", len(jobs))
			}
		}
	}
}
