package simulation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// brokenPods are the pods of a destination that never become available, by how many other pods there are below and above
// them. The destination has the ordinals 1 to 4 of five then.
func brokenPods() map[string][]int32 {
	return map[string][]int32{
		"the lowest": {1}, "one in the middle": {2}, "the highest": {4}, "two in the middle": {2, 3}, "two with one between": {1, 3}, "all": {1, 2, 3, 4},
	}
}

// broken returns a world that is half moved, and whose destination has pods that never become available: with a node, and
// a container that crashes, or without one.
func broken(t *testing.T, sc options, crash bool, ordinals []int32) *world {
	t.Helper()
	w := newWorld(sc)
	_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
		return p.Kind == engine.Advanced && p.Step.Op == plans.Grow && p.Step.Ordinals.Has(1)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rest()
	w.foreign = true
	for _, o := range ordinals {
		if crash {
			w.crash(plans.Destination, o)
		} else {
			w.unplace(plans.Destination, o)
		}
	}
	w.rest()
	return w
}

// unplace takes an ordinal's pod from its node. No node has room for it again.
func (w *world) unplace(side plans.Side, o int32) {
	next := clone(w.pod(side, o))
	next.Spec.NodeName, next.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	w.on[side].put(next)
	w.crashing = append(w.crashing, next.UID)
}

// halfBroken are five ordinals, one at a time or two, of a set of either policy.
func halfBroken(mode plans.Mode, parallel bool, window int32) options {
	return options{
		Mode: mode, Ordinals: 5, D: window, Window: window, Parallel: parallel, Templates: []string{"data"}, Budget: maxUnavailable(intstr.FromInt32(window)),
	}
}

// A plan goes back from a destination whatever pods of it are broken, and whether its set has an order or none, also if
// the process dies at any write: the set's controller stops at the first pod that is not available, and then the plan
// deletes what it does not come to.
func TestAnAbortGetsPastPodsThatNeverBecomeAvailable(t *testing.T) {
	t.Parallel()
	n := 0
	for _, mode := range modes() {
		for _, parallel := range []bool{false, true} {
			for _, window := range []int32{1, 2} {
				for name, ordinals := range brokenPods() {
					crash := n%2 == 0
					n++
					t.Run(fmt.Sprintf("%s, Parallel %t, %d at a time, %s, crashing %t", mode, parallel, window, name, crash), func(t *testing.T) {
						t.Parallel()
						sc := halfBroken(mode, parallel, window)
						first := broken(t, sc, crash, ordinals)
						back := func(w *world, at func(int) fault) {
							for range 10 {
								r := w.process()
								r.word, r.at = plans.Assurance{MaxUnavailable: 5}, at
								got, err := r.run(t.Context(), plans.Abort, nil)
								switch {
								case r.dead, errors.Is(err, errDead):
									continue
								case w.journal.Outcome != plans.Aborted:
									t.Errorf("it ended with %q (%v)", got, err)
								}
								return
							}
						}
						golden := first.fork(0)
						back(golden, nil)
						for at := first.writes; at < golden.writes && !t.Failed(); at++ {
							if !twentieth.plays(at) {
								continue
							}
							for _, f := range []fault{crashBefore, crashAfter} {
								w := first.fork(uint64(at))
								back(w, once(at, f))
								w.foreign = false
								cleanEnd(t, w, w.start)
							}
						}
						golden.foreign = false
						cleanEnd(t, golden, golden.start)
					})
				}
			}
		}
	}
}

// leftAlone is a world with an ordinal that has just left the range of the source, in which a lower pod fails before the
// set's controller has seen the new range.
func leftAlone(t *testing.T, mode plans.Mode) *world {
	t.Helper()
	w := newWorld(halfBroken(mode, false, 1))
	if _, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool { return p.Kind == engine.Wrote && p.Step.Op == plans.Shrink }); err != nil {
		t.Fatal(err)
	}
	next := clone(w.pod(plans.Source, 1))
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.on[plans.Source].put(next)
	w.crashing, w.foreign = append(w.crashing, next.UID), true
	return w
}

// A pod that serves stays up where another ordinal went down after its own had left the range: its controller keeps it,
// and so does the plan, in both directions. The plan says what it waits for, and goes on when that is up again, or goes
// back if the user allows two to be down.
func TestAPodThatServesIsNotDeletedWhileAnotherOneIsDown(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := leftAlone(t, mode)
		uid := w.pod(plans.Source, 4).UID
		got, err := w.process().run(t.Context(), plans.Move, nil)
		endsSaying(t, mode, got, err, "web-4 of blue/web in one is outside the range of its set, and is Ready: the set's controller deletes it once every other pod is available, and pod web-1 is Running and not Ready")
		if pod := w.pod(plans.Source, 4); pod == nil || pod.UID != uid || !ready(pod) {
			t.Fatalf("%s: the pod that served is gone", mode)
		}
		back, mended := w.fork(1), w.fork(2)
		mended.crashing = nil
		if got, err = mended.process().run(t.Context(), plans.Move, nil); err != nil || got.outcome != plans.Moved {
			t.Errorf("%s: it ended with %q (%v)", mode, got, err)
		}
		got, err = back.process().run(t.Context(), plans.Abort, nil)
		endsSaying(t, mode, got, err, "without it 2 ordinals would be unavailable, and at most 1 may be: it stays until that one is available, or until the user allows more with --max-unavailable 2")
		r := back.process()
		r.word = plans.Assurance{MaxUnavailable: 2}
		if got, err = r.run(t.Context(), plans.Abort, func(engine.Progress) bool {
			if p := back.pod(plans.Source, 4); p == nil || p.UID != uid {
				back.crashing = nil // else the new one is not made: in order, the set waits for web-1
			}
			return false
		}); err != nil || got.outcome != plans.Aborted {
			t.Errorf("%s: it ended with %q (%v)", mode, got, err)
		}
		for _, w := range []*world{w, back, mended} {
			unbroken(t, w)
		}
	}
}

// endsSaying checks that a run ended without an error, and that its reason has the words.
func endsSaying(t *testing.T, mode plans.Mode, got end, err error, words string) {
	t.Helper()
	if err != nil || !strings.Contains(got.reason, words) {
		t.Errorf("%s: it ended with %q (%v)", mode, got, err)
	}
}

// Who may not delete pods is told what to delete, and the plan goes on when it is gone.
func TestWhoMayNotDeletePodsIsToldWhatToDelete(t *testing.T) {
	t.Parallel()
	w := broken(t, halfBroken(plans.Reimport, false, 1), true, []int32{1, 2})
	r := w.process()
	for _, have := range w.rights {
		for in, rules := range have {
			have[in] = nil
			for _, rule := range rules {
				if rule.Resources[0] != "pods" || rule.Verbs[0] != "delete" {
					have[in] = append(have[in], rule)
				}
			}
		}
	}
	r.word = plans.Assurance{MaxUnavailable: 5}
	told := "pod web-1 of green/web in two is outside the range of its set, whose controller does not come to it: pod web-2 is Running and not Ready; this program may not delete it"
	deleted := 0
	got, err := r.run(t.Context(), plans.Abort, func(p engine.Progress) bool {
		if strings.Contains(p.Reason, told) && strings.HasSuffix(p.Reason, "): kubectl --context two -n green delete pod web-1") && w.pod(plans.Destination, 1) != nil {
			deleted++
			must(w.on[plans.Destination].Delete(t.Context(), clone(w.pod(plans.Destination, 1))))
		}
		return false
	})
	if err != nil || got.outcome != plans.Aborted || deleted == 0 {
		t.Errorf("it ended with %q (%v); %d deleted", got, err, deleted)
	}
}
