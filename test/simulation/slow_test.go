package simulation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// plight is something that does not come to its end by itself, from before a move on.
type plight struct {
	begin func(*world)
	end   func(*world)
	// waits is the step that waits for it.
	waits plans.Op
	// returns reports that an abort to another cluster needs no end of it.
	returns bool
}

func plights() map[string]plight {
	cordon := func(side plans.Side, unschedulable bool) func(*world) {
		return func(w *world) {
			for _, node := range all[*corev1.Node](w.on[side]) {
				next := clone(node)
				next.Spec.Unschedulable = unschedulable
				w.on[side].put(next)
			}
		}
	}
	return map[string]plight{
		"the pod never stops": {
			begin: func(w *world) { w.lingers[w.pod(plans.Source, 2).UID] = -1 },
			end:   func(w *world) { clear(w.lingers) },
			waits: plans.Vacate,
		},
		"the source never detaches": {
			begin: func(w *world) { w.stuck = w.on[plans.Source].name },
			end:   func(w *world) { w.stuck = "" },
			waits: plans.Vacate,
		},
		"the destination never attaches": {
			begin:   func(w *world) { w.jammed = w.on[plans.Destination].name },
			end:     func(w *world) { w.jammed = "" },
			waits:   plans.Grow,
			returns: true,
		},
		"no node of the destination takes the pod": {
			begin:   cordon(plans.Destination, true),
			end:     cordon(plans.Destination, false),
			waits:   plans.Grow,
			returns: true,
		},
	}
}

// Whatever never stops, starts, attaches or detaches is waited for with the volume in one place. When it ends the move
// goes on, and an abort gets past what concerns the destination alone (S1, S5, L1, L6).
func TestWhatDoesNotEndIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		done := goldenOf(t, newWorld(threeOrdinals(mode)), journey{plans.Move, plans.Finalize})
		for name, p := range plights() {
			t.Run(fmt.Sprintf("%s, %s", mode, name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(threeOrdinals(mode))
				p.begin(w)
				var last plans.Step
				got, err := w.process().run(t.Context(), plans.Move, func(now engine.Progress) bool {
					last = now.Step
					return false
				})
				if err != nil || got.kind != engine.Waiting || last.Op != p.waits || !w.inFlight() && p.waits == plans.Vacate {
					t.Fatalf("it ended with %q (%v) in %s, and should wait in %s", got, err, last.ID(), p.waits)
				}
				unbroken(t, w)
				onward := w.fork(1)
				p.end(onward)
				walk(t, onward, plans.Move, nil)
				walk(t, onward, plans.Finalize, nil)
				cleanEnd(t, onward, done.end)
				back := w.fork(2)
				lasts := p.returns && mode == plans.Reimport
				if !lasts {
					p.end(back)
				}
				walk(t, back, plans.Abort, nil)
				if lasts {
					p.end(back)
				}
				cleanEnd(t, back, back.start)
			})
		}
	}
}
