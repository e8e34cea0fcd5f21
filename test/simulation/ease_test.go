package simulation

import (
	"fmt"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A process that ends before a wave has left opens the budgets again. It may die while it does so. No process
// takes the wave down before the budgets are tight again (S3 is checked after every write).
func TestBudgetsAreOpenWhileAWaveThatHasNotLeftWaits(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		first := newWorld(sc)
		done := goldenOf(t, first.fork(0), journey{plans.Move, plans.Finalize})
		for _, after := range []plans.Op{plans.Relax, plans.Tighten} {
			for write := -1; write < 4; write++ {
				t.Run(fmt.Sprintf("%s, after %s, dies at write %d", name, after, write), func(t *testing.T) {
					w := first.fork(uint64(write + 1))
					w.evictions = 4
					r, e := w.begin(t, plans.Move)
					w.until(t, r, e, after)
					at := w.writes + write
					r.at = func(n int) fault {
						if write >= 0 && n == at {
							return crashAfter
						}
						return ""
					}
					if err := e.Ease(t.Context()); err != nil && !r.dead {
						t.Fatal(err)
					}
					w.rest()
					unbroken(t, w)
					walk(t, w, plans.Move, nil)
					walk(t, w, plans.Finalize, nil)
					cleanEnd(t, w, done.end)
				})
			}
		}
	}
}

// begin returns a process that has taken the plan over.
func (w *world) begin(t *testing.T, direction plans.Direction) (*process, *engine.Engine) {
	t.Helper()
	r := w.process()
	e, err := r.takeOver(t.Context(), direction)
	if err != nil {
		t.Fatal(err)
	}
	return r, e
}

// until advances to the end of the first step with this operation.
func (w *world) until(t *testing.T, r *process, e *engine.Engine, op plans.Op) {
	t.Helper()
	for range 5000 {
		p, err := e.Advance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind == engine.Advanced && p.Step.Op == op {
			return
		}
		r.tell()
		w.others(r, p.Kind)
	}
	t.Fatalf("it never passed %s", op)
}

func TestBudgetsAreOpenAfterEase(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		w := newWorld(sc)
		r, e := w.begin(t, plans.Move)
		w.until(t, r, e, plans.Tighten)
		w.rest()
		tight := w.allowed(plans.Source)
		if err := e.Ease(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.rest()
		if open := w.allowed(plans.Source); tight != sc.D-max(sc.Window, 1) || open != sc.D {
			t.Errorf("%s: the source allows %d tightened and %d eased, expected %d and %d", name, tight, open, sc.D-max(sc.Window, 1), sc.D)
		}
		unbroken(t, w)
	}
}
