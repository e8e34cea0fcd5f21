package simulation

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// finalizing returns a world in which finalize waits, since an ordinal of the destination is down.
func finalizing(t *testing.T, mode plans.Mode, seed uint64) *world {
	t.Helper()
	sc := threeOrdinals(mode)
	sc.Seed = seed
	w := newWorld(sc)
	walk(t, w, plans.Move, nil)
	w.rest()
	w.foreign = true
	w.crash(plans.Destination, 0)
	got, err := w.process().run(t.Context(), plans.Finalize, nil)
	if err != nil || got.kind != engine.Waiting || !strings.Contains(got.reason, "nothing of the source is deleted before that") || w.journal.Saved.Retired != "" {
		t.Fatalf("%s: finalize does not wait: %s (%v)", mode, got, err)
	}
	return w
}

// A plan that is being finalized has a way back, and a way to its rest, until a deletion is announced (S14).
func TestAFinalizeThatWaitsIsTurned(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for seed := range uint64(4) {
			w := finalizing(t, mode, seed)
			back := w.fork(seed)
			walk(t, back, plans.Abort, nil)
			cleanEnd(t, back, w.start)
			w.toward(t, plans.Move, 0, "")
			if set, _ := get[*appsv1.StatefulSet](w.on[plans.Source], blue, setName); w.journal.Outcome != plans.Moved || set == nil {
				t.Errorf("%s: turned, it does not rest as moved: %+v", mode, w.journal)
			}
			if found := w.verified(t); len(found) > 0 {
				t.Errorf("%s: %q", mode, found)
			}
			again := w.fork(seed + 1)
			walk(t, again, plans.Abort, nil)
			cleanEnd(t, again, w.start)
			must(w.on[plans.Destination].Delete(t.Context(), clone(w.pod(plans.Destination, 0))))
			w.crashing = nil
			w.rest()
			walk(t, w, plans.Finalize, nil)
		}
	}
}

// A process that dies at any write of finalize leaves a plan that can be aborted, unless a deletion was announced. Then
// the source set is deleted, or about to be.
func TestFinalizeHasNoWayBackFromItsFirstDeletionOn(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(sc)
			walk(t, w, plans.Move, nil)
			w.rest()
			want := goldenOf(t, w.fork(0), journey{plans.Finalize})
			turned, refused := 0, 0
			for n := w.writes + 1; n < want.writes; n++ {
				for _, f := range []fault{crashBefore, crashAfter} {
					end := w.fork(uint64(n))
					if end.toward(t, plans.Finalize, n, f); end.toward(t, plans.Abort, 0, "") {
						turned++
						cleanEnd(t, end, w.start)
						continue
					}
					refused++
					walk(t, end, plans.Finalize, nil)
					cleanEnd(t, end, want.end)
				}
			}
			if turned == 0 || refused == 0 {
				t.Errorf("%d were turned and %d refused, expected some of each", turned, refused)
			}
		})
	}
}

// Of a process that finalizes and one that aborts at the same moment one goes on: the journal decides (S9).
func TestFinalizeAndAbortNeverBothGoOn(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		walk(t, w, plans.Move, nil)
		w.rest()
		want := goldenOf(t, w.fork(0), journey{plans.Finalize})
		for n := w.writes; n < want.writes; n++ {
			end := w.fork(uint64(n))
			var refused error
			r, done := end.process(), false
			r.at = func(k int) fault {
				if k == n && !done { // the other one acts just before this write arrives
					done = true
					_, refused = end.process().takeOver(t.Context(), plans.Abort)
				}
				return ""
			}
			_, err := r.run(t.Context(), plans.Finalize, nil)
			unbroken(t, end)
			if refused == nil {
				walk(t, end, plans.Abort, nil)
				cleanEnd(t, end, w.start)
				continue
			}
			if id := reasons.Of(refused); id != reasons.DirectionImpossible {
				t.Errorf("%s, write %d: the abort is refused as %q: %v (finalize: %v)", mode, n, id, refused, err)
			}
			walk(t, end, plans.Finalize, nil)
			cleanEnd(t, end, want.end)
		}
	}
}

// A set that has grown after its move is finalized with all of its ordinals, and is not aborted as long as the plan has
// no place for them. Nothing leaves for that abort.
func TestASetThatHasGrownKeepsItsOrdinals(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for seed := range uint64(4) {
			sc := threeOrdinals(mode)
			sc.Seed = seed
			w := newWorld(sc)
			walk(t, w, plans.Move, nil)
			w.rest()
			w.foreign = true
			scale(plans.Destination, 5)(w)
			w.rest()
			if found := w.verified(t); len(found) > 0 {
				t.Errorf("%s: verify: %q", mode, found)
			}
			policies := w.policiesAbove(2)
			kept := w.fork(seed)
			walk(t, kept, plans.Finalize, nil)
			kept.rest()
			if marks := kept.marked(); len(marks) > 0 || kept.slice(plans.Destination) != (plans.Slice{Replicas: 5}) || len(policies) != 2 {
				t.Errorf("%s: finalized with the ordinals %s, %d new volumes, marks on %q", mode, kept.slice(plans.Destination), len(policies), marks)
			}
			kept.keepsPolicies(t, policies)
			got, err := w.process().run(t.Context(), plans.Abort, nil)
			if err != nil || got.kind != engine.Blocked || w.journal.BlockedID != reasons.OrdinalsAdded || w.slice(plans.Destination).Replicas != 5 || !strings.Contains(got.reason, "[3..4]") {
				t.Errorf("%s: the abort ended with %s (%v), on the destination %s", mode, got, err, w.slice(plans.Destination))
			}
			turned := w.fork(seed)
			turned.toward(t, plans.Move, 0, "")
			walk(t, turned, plans.Finalize, nil)
			scale(plans.Destination, 3)(w)
			w.rest()
			walk(t, w, plans.Abort, nil)
			if w.rest(); w.slice(plans.Source) != (plans.Slice{Replicas: 3}) || !ready(w.pod(plans.Source, 0)) {
				t.Errorf("%s: aborted, the source has %s", mode, w.slice(plans.Source))
			}
		}
	}
}

// policiesAbove returns the reclaim policies of the destination's volumes whose ordinals come after the given one.
func (w *world) policiesAbove(ordinal int32) map[string]corev1.PersistentVolumeReclaimPolicy {
	out := map[string]corev1.PersistentVolumeReclaimPolicy{}
	for _, pv := range all[*corev1.PersistentVolume](w.on[plans.Destination]) {
		if ordinalOf(pv.Spec.ClaimRef.Name) > ordinal {
			out[pv.Name] = pv.Spec.PersistentVolumeReclaimPolicy
		}
	}
	return out
}

// keepsPolicies checks that the destination's volumes have the reclaim policies that they had.
func (w *world) keepsPolicies(t *testing.T, had map[string]corev1.PersistentVolumeReclaimPolicy) {
	t.Helper()
	for _, pv := range all[*corev1.PersistentVolume](w.on[plans.Destination]) {
		if was, is := had[pv.Name]; is && pv.Spec.PersistentVolumeReclaimPolicy != was {
			t.Errorf("%s: volume %s was %s and is %s", w.options.Mode, pv.Name, was, pv.Spec.PersistentVolumeReclaimPolicy)
		}
	}
}

// Finalize waits for the ordinals of the plan, and not for those that others have added.
func TestFinalizeDoesNotWaitForWhatWasAdded(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		walk(t, w, plans.Move, nil)
		w.rest()
		w.foreign = true
		scale(plans.Destination, 4)(w)
		w.rest()
		w.crash(plans.Destination, 3)
		walk(t, w, plans.Finalize, nil)
	}
}
