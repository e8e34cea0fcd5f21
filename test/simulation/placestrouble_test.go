package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// trouble is what goes wrong with the places of one plan: what happens after each look, and what helps each time that the plan
// waits or its process has died.
type trouble struct {
	meets func()
	helps func()
}

// troubled runs processes until the direction is at its end. Their writes have the faults that at gives them.
func (w *world) troubled(t *testing.T, direction plans.Direction, at func(int) fault, of trouble) {
	t.Helper()
	var got end
	for range 12 {
		if w.journal.Ended() {
			return
		}
		var err error
		r := w.process()
		r.at = at
		got, err = r.run(t.Context(), direction, func(engine.Progress) bool {
			if of.meets != nil {
				of.meets()
			}
			return false
		})
		if got.kind == engine.Finished {
			w.rest()
			return
		} else if err != nil && !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		unbroken(t, w)
		of.helps()
		w.rest()
	}
	t.Fatalf("seed %d: %s has no end: %s; the last writes were:\n%s", w.options.Seed, direction, got, strings.Join(w.trail[max(0, len(w.trail)-20):], "\n"))
}

// standing returns the placeholders of a side that hold a place, each with its ordinal.
func (w *world) standing(side plans.Side) map[int32]*corev1.Pod {
	out := map[int32]*corev1.Pod{}
	for _, p := range w.placeholders(side) {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			out[ordinalOf(strings.TrimSuffix(p.Name, "-place"))] = p
		}
	}
	return out
}

// open lets all nodes of a side take pods.
func (w *world) open(side plans.Side) {
	w.onNodes(side, func(_ int, n *corev1.Node) { n.Status.Conditions, n.Spec.Unschedulable = nodeIsReady(), false })
}

// losesTwo has two places lost, of ordinals that are still up or of such that are ending.
func (w *world) losesTwo(to plans.Side, ending bool, loses func(*world, plans.Side, *corev1.Pod)) trouble {
	times := 0
	return trouble{helps: func() { w.open(to) }, meets: func() {
		for o, place := range w.standing(to) {
			up := w.available(to.Other(), o) && !ending
			ends := ending && w.pod(to.Other(), o) != nil && !w.slice(to.Other()).Has(o)
			if times < 2 && (up || ends) {
				times++
				loses(w, to, place)
			}
		}
	}}
}

// drained has the pod that has arrived last evicted from a node that is cordoned.
func (w *world) drained() trouble {
	to, once := plans.Destination, false
	return trouble{helps: func() { w.open(to) }, meets: func() {
		moved := w.pod(to, 2)
		if once || w.standing(to)[0] == nil || moved == nil || moved.Spec.NodeName == "" {
			return
		}
		once = true
		w.onNodes(to, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = n.Name == moved.Spec.NodeName })
		must(w.on[to].Delete(context.TODO(), clone(moved)))
	}}
}

// roomy opens one node after the other.
func (w *world) roomy(to plans.Side) trouble {
	room := 1
	shut := func() { w.onNodes(to, func(k int, n *corev1.Node) { n.Spec.Unschedulable = k >= room }) }
	shut()
	return trouble{helps: func() { room++; shut() }}
}

// adopted has one placeholder taken by another controller. It goes when the plan waits for that.
func (w *world) adopted(to plans.Side) trouble {
	var theirs *corev1.Pod
	return trouble{
		helps: func() {
			if theirs != nil && w.place(to, ordinalOf(strings.TrimSuffix(theirs.Name, "-place"))) != nil {
				w.on[to].remove(keyOf(theirs))
			}
		},
		meets: func() {
			for _, place := range w.standing(to) {
				if theirs == nil {
					theirs = clone(place)
					taken()["adopted"](theirs)
					w.on[to].put(theirs)
				}
			}
		},
	}
}

// troubles are those of a move and of an abort between two clusters. Each begins in a world of its own.
func troubles(direction plans.Direction) map[string]func(*world) trouble {
	to := plans.Destination
	if direction == plans.Abort {
		to = plans.Source
	}
	out := map[string]func(*world) trouble{
		"there is room for one after the other": func(w *world) trouble { return w.roomy(to) },
		"another controller takes one":          func(w *world) trouble { return w.adopted(to) },
	}
	for name, loses := range lost() {
		out["the ordinal is up, and "+name] = func(w *world) trouble { return w.losesTwo(to, false, loses) }
		out["the ordinal ends, and "+name] = func(w *world) trouble { return w.losesTwo(to, true, loses) }
	}
	if direction == plans.Move {
		out["a drain evicts a member"] = func(w *world) trouble { return w.drained() }
	} else {
		out["an ordinal is down, and there is no room"] = func(w *world) trouble {
			w.crash(plans.Destination, 0)
			w.onNodes(to, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = true })
			return trouble{helps: func() { w.open(to) }}
		}
	}
	return out
}

// everyTrouble plays each trouble of each direction on a world of its own.
func everyTrouble(t *testing.T, plays func(*testing.T, *world, plans.Direction, func(*world) trouble)) {
	t.Helper()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		first := readyFor(t, placed(threeOrdinals(plans.Reimport), plans.Warm), direction)
		first.checked, first.foreign = false, true
		for name, begins := range troubles(direction) {
			t.Run(fmt.Sprintf("%s, %s", direction, name), func(t *testing.T) {
				t.Parallel()
				plays(t, first, direction, begins)
			})
		}
	}
}

// leavesNone requires that nothing is broken, and that no placeholder is left but one that is another controller's.
func (w *world) leavesNone(t *testing.T) {
	t.Helper()
	w.rest()
	unbroken(t, w)
	for _, p := range slices.Concat(w.placeholders(plans.Source), w.placeholders(plans.Destination)) {
		if removable(p) {
			t.Errorf("%s is left; the last writes were:\n%s", p.Name, strings.Join(w.trail[max(0, len(w.trail)-25):], "\n"))
		}
	}
}

// A death at any write is survived with any trouble of places, and no placeholder is left.
func TestADeathAtAnyWriteAmongTroublesLeavesNoPlaceholder(t *testing.T) {
	t.Parallel()
	everyTrouble(t, func(t *testing.T, first *world, direction plans.Direction, begins func(*world) trouble) {
		t.Helper()
		whole := first.fork(0)
		whole.troubled(t, direction, nil, begins(whole))
		whole.leavesNone(t)
		kinds := []fault{crashBefore, crashAfter}
		for n := first.writes; n < whole.writes; n++ {
			for k, f := range kinds {
				if !twentieth.playsFault(n, k, len(kinds)) {
					continue
				}
				w := first.fork(uint64(n))
				w.troubled(t, direction, once(n, f), begins(w))
				if w.leavesNone(t); t.Failed() {
					t.Fatalf("that was: %s, write %d of %d", f, n, whole.writes)
				}
			}
		}
	})
}

// A process that sleeps at any write, and wakes up when another one has brought the plan to its end, leaves no placeholder.
func TestAProcessThatWakesUpAfterTheEndLeavesNoPlaceholder(t *testing.T) {
	t.Parallel()
	everyTrouble(t, func(t *testing.T, first *world, direction plans.Direction, begins func(*world) trouble) {
		t.Helper()
		whole := first.fork(0)
		whole.troubled(t, direction, nil, begins(whole))
		for _, one := range whole.acts {
			if n, makes := one.write, one.verb == "create" && strings.HasSuffix(one.name, "-place"); n >= first.writes && (makes || twentieth.plays(n)) {
				w := first.fork(0)
				w.wakesUp(t, direction, n, begins(w))
				if w.leavesNone(t); t.Failed() {
					t.Fatalf("it slept at write %d of %d", n, whole.writes)
				}
			}
		}
	})
}

// wakesUp lets a process sleep at a write until another one has brought the plan to its end.
func (w *world) wakesUp(t *testing.T, direction plans.Direction, n int, of trouble) {
	t.Helper()
	sleeper, slept := w.process(), false
	sleeper.at = func(m int) fault {
		if m == n {
			slept = true
			w.troubled(t, direction, nil, of)
		}
		return ""
	}
	_, _ = sleeper.run(t.Context(), direction, func(engine.Progress) bool {
		if of.meets != nil && !slept {
			of.meets()
		}
		return false
	})
	if !slept { // it waited for help
		w.troubled(t, direction, nil, of)
	}
}
