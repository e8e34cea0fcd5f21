package simulation

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func TestEveryGateIsAskedOnceForEveryOrdinal(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, sc := range []options{threeOrdinals(mode), inWaves(mode)} {
			w := newWorld(withGates(sc))
			walk(t, w, plans.Move, nil)
			walk(t, w, plans.Abort, nil)
			cleanEnd(t, w, w.start)
			for o := range sc.Ordinals {
				for _, g := range w.plan.Gates {
					for _, side := range plans.Sides() {
						if what := fmt.Sprintf("%s web-%d %s", g.Name, o, side); w.app.asked[what] != 1 {
							t.Errorf("%s: %q was asked %d times, expected 1", mode, what, w.app.asked[what])
						}
					}
				}
			}
		}
	}
}

func TestAGateThatSaysNoForAWhileIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(withGates(threeOrdinals(mode)))
		w.app.shy = 3
		walk(t, w, plans.Move, nil)
		if got := w.app.asked["drain web-1 source"]; got != 4 {
			t.Errorf("%s: asked %d times, expected 4", mode, got)
		}
		walk(t, w, plans.Finalize, nil)
	}
}

// holds runs a direction into a gate that always answers no.
func (w *world) holds(t *testing.T, direction plans.Direction, deaf, want string) {
	t.Helper()
	w.app.deaf = deaf
	got, err := w.process().run(t.Context(), direction, nil)
	if err != nil || got.kind != engine.Blocked || !strings.Contains(got.reason, want) || w.journal.Blocked != got.reason {
		t.Fatalf("%s: ended with %q (%v), expected it blocked with %q; the journal says %q", deaf, got, err, want, w.journal.Blocked)
	}
	w.rest()
	unbroken(t, w)
}

// skip applies --skip-gates for a process that has taken the plan over.
func (w *world) skip(t *testing.T) {
	t.Helper()
	w.change(t, func(j *journal.Journal) error { return j.Skip(w.plan) })
	w.journal.SkipGates = 1 // the invariants read it here
}

func TestAGateThatNeverPassesBlocksThePlan(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for deaf, want := range map[string]string{
			"drain web-1 source":       "gate drain (BeforeShrink) of web-1: exec drain in pod web-1 of blue/web in one: exit code 1: not now; expected exit code 0 (asked 1",
			"backup web-1 source":      "gate backup (BeforeShrink) of web-1: Job backup-1-",
			"ranges web-1 destination": "gate ranges (AfterGrow) of web-1: exec ranges in pod web-0 of blue/web in one: exit code 1",
			"health web-1 destination": "gate health (AfterGrow) of web-1: httpGet /health $(POD) $(SIDE) in pod web-1 of green/web in ",
			"rejoin web-1 destination": "failed (BackoffLimitExceeded: Job has reached the specified backoff limit); expected it to be complete (`kubectl logs",
		} {
			t.Run(string(mode)+" "+deaf, func(t *testing.T) {
				t.Parallel()
				first := newWorld(withGates(threeOrdinals(mode)))
				w := first.fork(1)
				w.holds(t, plans.Move, deaf, want)
				jobs := len(all[*batchv1.Job](w.stores[0])) + len(all[*batchv1.Job](w.stores[len(w.stores)-1]))
				if jobs == 0 && strings.Contains(want, "Job") {
					t.Error("the Job that failed is gone; nobody can read why")
				}

				again := w.fork(2) // resumed too early
				again.holds(t, plans.Move, deaf, want)
				again.app.deaf = "" // resumed
				walk(t, again, plans.Move, nil)
				walk(t, again, plans.Finalize, nil)

				past := w.fork(3) // resumed without the gate
				past.skip(t)
				walk(t, past, plans.Move, nil)
				if past.app.yes["rejoin web-0 destination"] != 1 {
					t.Error("--skip-gates skipped the gates of another step too")
				}

				back := w.fork(4) // aborted; an ordinal that never left is not asked about
				back.app.deaf = ""
				walk(t, back, plans.Abort, nil)
				cleanEnd(t, back, back.start)
				if strings.HasSuffix(deaf, "source") && back.app.asked["ranges web-1 source"]+back.app.asked["drain web-1 destination"] > 0 {
					t.Error("an ordinal that never left was asked about during an abort")
				}
			})
		}
	}
}

func TestABrokenApplicationIsAbortedWithoutItsGates(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(withGates(threeOrdinals(mode)))
		w.holds(t, plans.Move, "health web-1", "gate health")
		w.holds(t, plans.Abort, "rejoin web-1", "`abort --skip-gates` returns to the source")
		w.app.deaf = "" // no question may be asked
		asked := len(w.app.asked)
		w.skip(t)
		walk(t, w, plans.Abort, nil)
		cleanEnd(t, w, w.start)
		if len(w.app.asked) != asked {
			t.Errorf("%s: gates were asked after all: %v", mode, w.app.asked)
		}
	}
}

// A pod that never started on the side that is given up has nothing to hand over.
func TestAnAbortNeedsNothingOfAPodThatNeverCameUp(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(withGates(threeOrdinals(mode)))
		_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
			return p.Kind == engine.Wrote && p.Step.ID() == "1/Grow"
		})
		if err != nil {
			t.Fatal(err)
		}
		w.app.deaf = "drain web-1 destination"
		r := w.process()
		if _, err := r.run(t.Context(), plans.Abort, func(p engine.Progress) bool { return p.Step.ID() == "1/Shrink" }); err != nil {
			t.Fatal(err)
		}
		if got := w.app.asked["drain web-1 destination"]; got > 0 && w.pod(plans.Destination, 1) == nil {
			t.Errorf("%s: a pod that is not there was asked %d times", mode, got)
		}
	}
}
