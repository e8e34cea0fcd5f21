package simulation

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// shrinkOf returns the number of the write that, in a golden move, takes the ordinal out of the source's
// range.
func shrinkOf(t *testing.T, first *world, ordinal int32) int {
	t.Helper()
	whole := first.fork(0)
	goldenOf(t, whole, journey{plans.Move})
	for _, a := range whole.acts {
		if a.wave.Has(ordinal) {
			return a.write
		}
	}
	t.Fatalf("ordinal %d never moves", ordinal)
	return 0
}

func TestAReplacedPodIsTheOneThatMustBeGone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		dieAt(t, w, shrinkOf(t, w, 2), crashBefore)
		old := w.pod(plans.Source, 2)
		must(w.on[plans.Source].Delete(context.TODO(), clone(old)))
		w.rest()
		now := w.pod(plans.Source, 2)
		if now == nil || now.UID == old.UID || w.journal.Flight.Pod(2).UID != old.UID {
			t.Fatalf("the pod was not replaced after its intent: %v", w.journal.Flight)
		}
		w.broken = nil // the deletion was not an eviction: this violation of S2 is the user's
		_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool { return p.Step.ID() == "2/Vacate" })
		if err != nil || w.journal.Flight.Pod(2).UID != now.UID || w.journal.Flight.Pod(2).Node != now.Spec.NodeName {
			t.Errorf("%s: the journal knows pod %+v (%v), want UID %s on %s", mode, w.journal.Flight, err, now.UID, now.Spec.NodeName)
		}
		w.broken = nil
		walk(t, w, plans.Move, nil)
	}
}

// A pod that did not exist when the plan was reversed, but was created before the shrink, must still release
// its volumes.
func TestAPodThatCameAfterTheIntentMustReleaseItsVolumes(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		first := newWorld(threeOrdinals(mode))
		for seed := range uint64(20) {
			w := first.fork(seed)
			_, err := w.process().run(t.Context(), plans.Move, func(engine.Progress) bool {
				set, ok := get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
				return ok && *set.Spec.Replicas == 1 // grown, and no pod yet
			})
			if err != nil || w.pod(plans.Destination, 2) != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			r := w.process()
			came := false
			r.at = func(int) fault {
				if !came && w.journal.Leg.Direction == plans.Abort && w.journal.Flight.From == plans.Destination {
					came = true // between the intent and the write
					w.bringUp(2)
				}
				return ""
			}
			if _, err := r.run(t.Context(), plans.Abort, nil); err != nil && !errors.Is(err, errDead) {
				t.Fatal(err)
			}
			if !came {
				t.Error("the pod never came")
			}
			cleanEnd(t, w, w.start)
		}
	}
}

// bringUp lets a pod of the destination run before any status shows it.
func (w *world) bringUp(o int32) {
	s := w.on[plans.Destination]
	for w.pod(plans.Destination, o) == nil && w.setController(s) {
		w.check()
	}
	for w.scheduler(s) || w.attacher(s) || w.kubelet(s) {
		w.check()
	}
}
