package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// placed returns options in which the places of the ordinals are taken before they leave, and each pod has a node of its own.
func placed(sc options, proof plans.Proof) options {
	sc.Places, sc.Spread = proof, true
	return sc
}

// Where the places of the ordinals are taken before they leave, a death at any write leaves no placeholder in the end, and
// nothing else than without one.
func TestADeathAtAnyWriteLeavesNoPlaceholder(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, sc := range []options{threeOrdinals(mode), inWaves(mode)} {
			for _, j := range journeys() {
				t.Run(fmt.Sprintf("%s, windows of %d, %s", mode, max(1, sc.Window), j.name()), func(t *testing.T) {
					t.Parallel()
					first := newWorld(placed(sc, plans.Warm))
					everyWrite(t, first, j, false, []fault{crashBefore, crashAfter}, twentieth, "")
					for _, c := range j {
						walk(t, first, c, nil)
					}
					first.rest()
					if left := len(first.placeholders(plans.Source)) + len(first.placeholders(plans.Destination)); left > 0 {
						t.Errorf("%d placeholders are left", left)
					}
				})
			}
		}
	}
}

// An ordinal stays up, in both directions, while its place is not there, and leaves when it is. A plan that ends its wait
// leaves no placeholder behind.
func TestAnOrdinalStaysUpWithoutItsPlace(t *testing.T) {
	t.Parallel()
	cordon := func(is bool) func(*world, *corev1.Node) {
		return func(_ *world, n *corev1.Node) { n.Spec.Unschedulable = is }
	}
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		for _, proof := range []plans.Proof{plans.Scheduled, plans.Warm} {
			for _, sc := range []options{threeOrdinals(plans.Reimport), inWaves(plans.Reimport)} {
				for seed := range uint64(4) {
					sc.Seed = seed
					sc.Existing = seed > 1 // then the set stays when the user turns back, and its placeholders would too
					w := readyFor(t, placed(sc, proof), direction)
					w.checked = false
					from := w.origin(direction)
					each := func(change func(*world, *corev1.Node)) {
						for _, n := range all[*corev1.Node](w.on[from.Other()]) {
							next := clone(n)
							change(w, next)
							w.on[from.Other()].put(next)
						}
						w.rest()
					}
					each(cordon(true))
					e, err := w.process().takeOver(t.Context(), direction)
					if err != nil {
						t.Fatal(err)
					}
					got := waitsFor(t, w, e)
					if !strings.Contains(got.Reason, "does not have its place yet") || w.up(from) != sc.Ordinals || len(w.placeholders(from.Other())) == 0 {
						t.Errorf("%s %s: %+v, and %d of %d serve where they were", direction, proof, got, w.up(from), sc.Ordinals)
					}
					unbroken(t, w)
					last := direction
					if seed%2 == 1 { // the process has died, and the user turns back
						last = plans.Abort
					}
					each(cordon(false))
					walk(t, w, last, nil)
					w.rest()
					if left := len(w.placeholders(plans.Source)) + len(w.placeholders(plans.Destination)); left > 0 && last == plans.Abort {
						t.Errorf("%d placeholders are left", left)
					}
				}
			}
		}
	}
}

// waitsFor lets an engine advance until it waits while nothing changes any more.
func waitsFor(t *testing.T, w *world, e *engine.Engine) (p engine.Progress) {
	t.Helper()
	for range 400 {
		var err error
		if p, err = e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Kind == engine.Waiting {
			before := w.writes
			w.rest()
			if again, err := e.Advance(t.Context()); err == nil && again.Kind == engine.Waiting && again.Reason == p.Reason && w.writes == before {
				return again
			}
		}
	}
	t.Fatalf("it does not wait: %+v", p)
	return p
}

// A pod of somebody else with the name of a placeholder is not touched, and the plan is blocked with everything up.
func TestAPodThatIsNoPlaceholderIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(placed(threeOrdinals(mode), plans.Warm))
		name := w.plan.Place(plans.Destination, 2)
		w.foreign = true
		theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: green, Name: name, Labels: map[string]string{plans.PlaceholderLabel: planName}}}
		if err := w.on[plans.Destination].Create(context.Background(), theirs); err != nil {
			t.Fatal(err)
		}
		got, err := w.process().run(t.Context(), plans.Move, nil)
		if err != nil || got.kind != engine.Blocked || !strings.Contains(got.reason, "placeholder "+name) || w.up(plans.Source) != 3 {
			t.Errorf("%s: %s (%v), and %d serve", mode, got, err, w.up(plans.Source))
		}
		if _, there := get[*corev1.Pod](w.on[plans.Destination], green, name); !there {
			t.Error("it was deleted")
		}
		unbroken(t, w)
	}
}

// Where there is room for all ordinals but one, that one stays up, and its placeholder takes no place from the ordinal before
// it, which is on its way there.
func TestAPlaceholderTakesNoPlaceFromTheOrdinalBefore(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, sc := range []options{placed(threeOrdinals(mode), plans.Scheduled), placed(threeOrdinals(mode), plans.Warm), placed(inWaves(mode), plans.Warm)} {
			for seed := range uint64(6) {
				sc.Seed = seed
				w := newWorld(sc)
				w.rest()
				leave(w, 2)
				e, err := w.process().takeOver(t.Context(), plans.Move)
				if err != nil {
					t.Fatal(err)
				}
				got := waitsFor(t, w, e)
				if down := sc.Ordinals - w.up(plans.Source) - w.up(plans.Destination); down != 0 || !strings.Contains(got.Reason, "stays up") {
					t.Errorf("%s, %s, %d at once, seed %d: %d ordinals are down, and it waits: %s", mode, sc.Places, max(1, sc.Window), seed, down, got.Reason)
				}
				unbroken(t, w)
			}
		}
	}
}

// leave leaves so many nodes of the destination that take pods and have none.
func leave(w *world, free int) {
	there := w.on[plans.Destination]
	for _, n := range all[*corev1.Node](there) {
		if free > 0 && !w.taken(there, n, &corev1.Pod{}) {
			free--
			continue
		}
		next := clone(n)
		next.Spec.Unschedulable = true
		there.put(next)
	}
}
