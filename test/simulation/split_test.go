package simulation

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// take records how far the move goes, as the user requested.
func (w *world) take(t *testing.T, r plans.Limits) {
	t.Helper()
	w.change(t, func(j *journal.Journal) error { return j.Limit(w.plan, r) })
}

// goes runs one process of a move and requires this end.
func (w *world) goes(t *testing.T, kind engine.Kind, outcome plans.Outcome, split int32) {
	t.Helper()
	got, err := w.process().run(t.Context(), plans.Move, nil)
	if err != nil || got.kind != kind || got.outcome != outcome {
		t.Fatalf("ended with %q (%v), expected %s %s", got, err, kind, outcome)
	}
	w.rest()
	unbroken(t, w)
	w.fits(t)
	if a, b := w.slice(plans.Source), w.slice(plans.Destination); a.End() != split || b.Start != split {
		t.Errorf("the source has %s, the destination %s, expected a split at %d", a, b, split)
	}
}

// fits requires that no budget demands more pods than the side has. Under such a budget no pod could be
// evicted, not even a broken one.
func (w *world) fits(t *testing.T) {
	t.Helper()
	for _, side := range plans.Sides() {
		name, _ := w.plan.BudgetOn(side)
		b, ok := get[*policyv1.PodDisruptionBudget](w.on[side], w.namespace(side), name)
		if ok && b.Spec.MinAvailable != nil && b.Spec.MinAvailable.IntVal > w.slice(side).Replicas {
			t.Errorf("the budget of the %s has minAvailable %d for %s", side, b.Spec.MinAvailable.IntVal, w.slice(side))
		}
	}
}

// 3335-13
func TestASplitIsStable(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		first := newWorld(sc)
		done := goldenOf(t, first.fork(0), journey{plans.Move, plans.Finalize})
		for split := int32(1); split < sc.Ordinals; split++ {
			t.Run(fmt.Sprintf("%s, at %d", name, split), func(t *testing.T) {
				w := first.fork(uint64(split))
				w.evictions = 3 // nodes are drained all the time
				w.take(t, plans.Limits{Until: &split})
				w.goes(t, engine.Finished, plans.Split, split)
				w.goes(t, engine.Finished, plans.Split, split) // nothing to do
				back := w.fork(1)
				walk(t, back, plans.Abort, nil)
				cleanEnd(t, back, back.start)
				w.take(t, plans.Limits{PauseAfter: 1})
				if split > 1 {
					w.goes(t, engine.Paused, "", split-1)
					w.take(t, plans.Limits{})
					w.pause(t, false)
				}
				walk(t, w, plans.Move, nil)
				walk(t, w, plans.Finalize, nil)
				cleanEnd(t, w, done.end)
			})
		}
	}
}

// A crash at any write of the second half of a split move is survived too.
func TestADeathAfterASplitIsSurvived(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, split := newWorld(sc), int32(2)
			w.take(t, plans.Limits{Until: &split})
			w.goes(t, engine.Finished, plans.Split, split)
			w.take(t, plans.Limits{})
			everyWrite(t, w, journey{plans.Move, plans.Finalize}, true, []fault{crashBefore, crashAfter}, shareOf(name), "a split, then a fault")
			for n, last := w.writes, goldenOf(t, w.fork(0), journey{plans.Move}).writes; n < last; n += 3 {
				back := w.fork(uint64(n))
				dieAt(t, back, n, crashAfter)
				walk(t, back, plans.Abort, nil)
				cleanEnd(t, back, back.start)
			}
		})
	}
}
