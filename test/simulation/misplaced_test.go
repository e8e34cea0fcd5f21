package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// onNodes changes all nodes of a cluster.
func (w *world) onNodes(side plans.Side, change func(k int, n *corev1.Node)) {
	for k, n := range all[*corev1.Node](w.on[side]) {
		next := clone(n)
		change(k, next)
		w.on[side].put(next)
	}
}

// helped runs processes until the direction is at its end, and helps each time that the plan waits.
func (w *world) helped(t *testing.T, direction plans.Direction, helps func()) {
	t.Helper()
	w.troubled(t, direction, nil, trouble{helps: helps})
}

// Where a cluster has room for one pod after the other, the place of the next ordinal is not taken in the place of the one
// that is coming, and both would wait (S28).
func TestAPlaceholderNeverKeepsAnOrdinalFromItsNode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, sc := range []options{threeOrdinals(mode), inWaves(mode)} {
				t.Run(fmt.Sprintf("%s, %s, windows of %d", mode, direction, max(1, sc.Window)), func(t *testing.T) {
					t.Parallel()
					sc := placed(sc, plans.Warm)
					sc.Nodes = int(sc.Ordinals)
					if mode == plans.Rebind {
						sc.Nodes += int(max(1, sc.Window))
					}
					first := readyFor(t, sc, direction)
					first.checked = false
					for seed := range uint64(6) {
						w := first.fork(seed)
						to, room := w.origin(direction).Other(), int(max(1, sc.Window))
						shut := func() {
							w.onNodes(to, func(k int, n *corev1.Node) { n.Spec.Unschedulable = k >= room && mode == plans.Reimport })
						}
						shut()
						w.helped(t, direction, func() { room++; shut() })
						unbroken(t, w)
					}
				})
			}
		}
	}
}

// lost are the ways in which the place of an ordinal is lost after it was proven.
func lost() map[string]func(*world, plans.Side, *corev1.Pod) {
	node := func(change func(*corev1.Node)) func(*world, plans.Side, *corev1.Pod) {
		return func(w *world, side plans.Side, place *corev1.Pod) {
			n, _ := get[*corev1.Node](w.on[side], "", place.Spec.NodeName)
			next := clone(n)
			change(next)
			w.on[side].put(next)
		}
	}
	return map[string]func(*world, plans.Side, *corev1.Pod){
		"its node is cordoned":  node(func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"its node is not Ready": node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }),
		"its node is gone": func(w *world, side plans.Side, place *corev1.Pod) {
			if _, there := get[*corev1.Node](w.on[side], "", place.Spec.NodeName); there { // else another place on it was lost
				w.on[side].remove(key{"Node", "", place.Spec.NodeName})
			}
		},
		"it is evicted": func(w *world, side plans.Side, place *corev1.Pod) {
			must(w.on[side].Delete(context.TODO(), clone(place)))
		},
		"it is preempted": func(w *world, side plans.Side, place *corev1.Pod) {
			next := clone(place)
			next.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Preempting", Message: "for a pod of a higher priority"}
			w.on[side].put(next)
		},
	}
}

// placeHeld reports whether a placeholder runs on a node that takes pods, and its ordinal is still up on the other side.
func (w *world) placeHeld(to plans.Side, place *corev1.Pod) bool {
	node, there := get[*corev1.Node](w.on[to], "", place.Spec.NodeName) // else it is lost already
	return there && up(node) && !drained(node) && place.Status.Phase == corev1.PodRunning && place.DeletionTimestamp == nil &&
		w.available(to.Other(), ordinalOf(strings.TrimSuffix(place.Name, "-place")))
}

// An ordinal does not leave for a place that was lost after it was proven. The place is taken again, on another node.
func TestNoOrdinalLeavesForAPlaceThatIsLost(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			first := readyFor(t, placed(threeOrdinals(mode), plans.Warm), direction)
			first.checked = false
			for name, loses := range lost() {
				if mode == plans.Rebind && name == "its node is gone" {
					continue // the volume that was on it before waits for the word of the user
				}
				for seed := range uint64(4) {
					w := first.fork(seed)
					w.foreign = true
					to, times := w.origin(direction).Other(), 0
					_, err := w.process().run(t.Context(), direction, func(engine.Progress) bool {
						for _, place := range w.placeholders(to) {
							if times < 2 && w.placeHeld(to, place) {
								times++
								loses(w, to, place)
							}
						}
						return false
					})
					if err != nil || times != 2 {
						t.Errorf("%s, %s, %s: lost %d times, %v", mode, direction, name, times, err)
					}
					unbroken(t, w)
					w.helped(t, direction, func() {
						w.onNodes(to, func(_ int, n *corev1.Node) { n.Status.Conditions, n.Spec.Unschedulable = nodeIsReady(), false })
					})
				}
			}
		}
	}
}

// A pod that was evicted gets the room that a placeholder has, and no budget counts placeholders: a drain goes on.
func TestAPlaceholderIsInTheWayOfNoDrain(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for seed := range uint64(6) {
			sc := placed(threeOrdinals(mode), plans.Warm)
			sc.Seed, sc.Nodes = seed, 3
			if mode == plans.Rebind {
				sc.Nodes = 4
			}
			w := newWorld(sc)
			w.foreign = true
			_, err := w.process().run(t.Context(), plans.Move, func(engine.Progress) bool {
				place := w.place(plans.Destination, 0)
				return place != nil && place.Status.Phase == corev1.PodRunning
			})
			if err != nil {
				t.Fatal(err)
			}
			moved := w.pod(plans.Destination, 2)
			for _, p := range w.placeholders(plans.Destination) {
				if ready(p) {
					t.Errorf("%s is Ready: a Service or a budget that selects every pod counts it", p.Name)
				}
			}
			node, _ := get[*corev1.Node](w.on[plans.Destination], "", moved.Spec.NodeName)
			next := clone(node)
			next.Spec.Unschedulable = true
			w.on[plans.Destination].put(next)
			must(w.on[plans.Destination].Delete(t.Context(), clone(moved)))
			got, err := w.process().run(t.Context(), plans.Move, nil)
			if pod := w.pod(plans.Destination, 2); err != nil || !ready(pod) {
				t.Errorf("%s, seed %d: the pod that was evicted is not up again; the plan says %s (%v)", mode, seed, got, err)
			}
			unbroken(t, w)
			w.helped(t, plans.Move, func() { w.onNodes(plans.Destination, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = false }) })
		}
	}
}

// taken are the ways in which another program takes a placeholder for its own.
func taken() map[string]func(*corev1.Pod) {
	return map[string]func(*corev1.Pod){
		"adopted": func(p *corev1.Pod) {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "all-of-it", UID: nightly, Controller: new(true)})
		},
		"stripped of its labels": func(p *corev1.Pod) { p.Labels = nil },
		"given a claim": func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "cache"}}})
		},
	}
}

// runTaken runs a plan, and takes one placeholder for another program, while its ordinal is in flight or before.
func (w *world) runTaken(t *testing.T, direction plans.Direction, flying bool, takes func(*corev1.Pod)) (theirs *corev1.Pod, got end, err error) {
	t.Helper()
	from := w.origin(direction)
	got, err = w.process().run(t.Context(), direction, func(engine.Progress) bool {
		for _, place := range w.placeholders(from.Other()) {
			o := ordinalOf(strings.TrimSuffix(place.Name, "-place"))
			if theirs == nil && place.Spec.NodeName != "" && w.slice(from).Has(o) != flying {
				theirs = clone(place)
				takes(theirs)
				w.on[from.Other()].put(theirs)
			}
		}
		return false
	})
	return theirs, got, err
}

// leavesTaken plays one placeholder that another program takes for its own.
func (w *world) leavesTaken(t *testing.T, what string, direction plans.Direction, flying bool, takes func(*corev1.Pod)) {
	t.Helper()
	to := w.origin(direction).Other()
	theirs, got, err := w.runTaken(t, direction, flying, takes)
	switch {
	case theirs == nil && err == nil && !flying:
		return // each has left as soon as it had its place
	case theirs == nil || err != nil:
		t.Fatalf("%s: %s, %v", what, got, err)
	}
	if now, there := get[*corev1.Pod](w.on[to], theirs.Namespace, theirs.Name); !there || now.UID != theirs.UID {
		t.Errorf("%s: it was deleted", what)
	}
	held := !w.inFlight() && got.kind == engine.Blocked && strings.Contains(got.reason, theirs.Name)
	if without := flying && goesWithout(theirs, direction, got); !without && !held {
		t.Errorf("%s: %s, in flight: %t", what, got, w.inFlight())
	}
	unbroken(t, w)
	w.on[to].remove(keyOf(theirs))
	w.helped(t, direction, func() {})
}

// goesWithout reports whether a plan has come to its end without a placeholder that was taken. One without labels is not found
// at the end of an abort either: it goes with its set, or by its deadline.
func goesWithout(theirs *corev1.Pod, direction plans.Direction, got end) bool {
	return direction == plans.Move && got.outcome == plans.Moved || len(theirs.Labels) == 0 && got.outcome == plans.Aborted
}

// A placeholder that another program has taken for its own is not deleted. While its ordinal is up the plan is held; an ordinal
// that is down comes up without it.
func TestAPlaceholderThatIsAnothersIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			first := readyFor(t, placed(threeOrdinals(mode), plans.Warm), direction)
			first.checked = false
			for name, takes := range taken() {
				for seed := range uint64(6) {
					for _, flying := range []bool{false, true} {
						what := fmt.Sprintf("%s, %s, %s, in flight %t, seed %d", mode, direction, name, flying, seed)
						w := first.fork(seed)
						w.foreign = true
						w.leavesTaken(t, what, direction, flying, takes)
					}
				}
			}
		}
	}
}

// A placeholder that a process sends late does not stay, whenever it arrives: the process that has the plan takes it away, and
// the next plan of the set takes away what arrives after the end.
func TestAPlaceholderThatIsLateDoesNotStay(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, back := range []bool{false, true} {
			first := newWorld(placed(threeOrdinals(mode), plans.Warm))
			direction := plans.Move
			if back {
				walk(t, first, plans.Move, nil)
				direction = plans.Abort
			}
			for seed := range uint64(2) {
				whole := first.fork(seed)
				walk(t, whole, direction, nil)
				for _, one := range whole.acts {
					if one.write >= first.writes && one.verb == "create" && (strings.HasSuffix(one.name, "-place") || strings.HasSuffix(one.name, "-anchor")) {
						comesLate(t, first.fork(seed), direction, one.write)
					}
				}
			}
		}
	}
}

// comesLate lets the write of that number arrive when another process has the plan, at any time.
func comesLate(t *testing.T, w *world, direction plans.Direction, n int) {
	t.Helper()
	r := w.process()
	r.at = once(n, delayed)
	_, _ = r.run(t.Context(), direction, nil)
	if name := r.pending; name == nil || !strings.HasSuffix(name.object.GetName(), "-place") && !strings.HasSuffix(name.object.GetName(), "-anchor") {
		t.Fatalf("write %d is %+v", n, r.pending)
	}
	to := w.origin(direction).Other()
	for _, arrives := range []string{"Shrink", "Grow", "Relax"} {
		w, there := w.fork(w.options.Seed), false
		_, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
			if string(p.Step.Op) == arrives && !there {
				there = w.on[to].Create(t.Context(), clone(r.pending.object)) == nil
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
		w.rest()
		if left := slices.Concat(w.placeholders(plans.Source), w.placeholders(plans.Destination)); len(left) > 0 {
			t.Errorf("%s, write %d, which arrives at %s: %s is left", direction, n, arrives, left[0].Name)
		}
		unbroken(t, w)
	}
}

// Of the ordinals that a plan returns, also when it is turned in the middle of a wave, one that serves goes to a place that is
// there (S18), and one that is down goes without it.
func TestAnOrdinalThatServesGoesBackToAPlace(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, sc := range []options{threeOrdinals(mode), inWaves(mode)} {
			t.Run(fmt.Sprintf("%s, windows of %d", mode, max(1, sc.Window)), func(t *testing.T) {
				t.Parallel()
				first := newWorld(placed(sc, plans.Warm))
				whole := first.fork(0)
				walk(t, whole, plans.Move, nil)
				for n := first.writes; n < whole.writes; n++ {
					if !fifth.plays(n) {
						continue
					}
					w := first.fork(uint64(n))
					r := w.process()
					r.at = once(n, crashAfter)
					_, _ = r.run(t.Context(), plans.Move, nil)
					w.rest() // the wave may arrive meanwhile
					again := w.fork(uint64(n))
					walk(t, w, plans.Abort, nil)
					r = again.process()
					r.at = once(again.writes+n%20, crashAfter)
					_, _ = r.run(t.Context(), plans.Abort, nil)
					again.rest()
					again.turn(t)
				}
			})
		}
	}
}

// turn has the plan go to the destination again.
func (w *world) turn(t *testing.T) {
	t.Helper()
	if w.journal.Ended() {
		return
	}
	r := w.process()
	r.turns = true
	if got, err := r.run(t.Context(), plans.Move, nil); err == nil && got.kind != engine.Finished {
		t.Errorf("seed %d: turned, it ended with %s", w.options.Seed, got)
	}
	unbroken(t, w)
}

// An ordinal that is down on the side that it leaves has nothing to lose: it does not wait for its place.
func TestAnOrdinalThatIsDownGoesBackWithoutAPlace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := readyFor(t, placed(threeOrdinals(plans.Reimport), plans.Warm), plans.Abort)
		w.options.Seed, w.checked, w.foreign = seed, false, true
		w.crash(plans.Destination, 0)
		w.onNodes(plans.Source, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = true })
		got, err := w.process().run(t.Context(), plans.Abort, nil)
		if err != nil || !w.slice(plans.Source).Has(0) {
			t.Errorf("seed %d: %s (%v): the source has %s", seed, got, err, w.slice(plans.Source))
		}
		unbroken(t, w)
		w.helped(t, plans.Abort, func() { w.onNodes(plans.Source, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = false }) })
	}
}
