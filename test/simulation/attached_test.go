package simulation

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// leaveAttached has a volume attached to a node that does not exist any more, as a driver leaves it that has died. Nobody
// removes it.
func (w *world) leaveAttached(side plans.Side, claim string) (name string) {
	for _, pv := range all[*corev1.PersistentVolume](w.on[side]) {
		if w.disks[diskOf(pv)].claim != claim {
			continue
		}
		va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachment(pv.Name, goneNode), Annotations: map[string]string{"disk": "gone " + string(side)}}}
		va.Spec = storagev1.VolumeAttachmentSpec{NodeName: goneNode, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}}
		must(w.on[side].Create(context.TODO(), va))
		return va.Name
	}
	panic("no volume has the data of claim " + claim)
}

// An attachment that nobody removes would be waited for with the ordinal down. It is reported before the ordinal leaves, in
// whichever cluster it is, and the user's word leads on (S17, L6).
func TestAnAttachmentThatNobodyRemovesTakesNoOrdinalDown(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, side := range plans.Sides() {
				for seed := range uint64(4) {
					sc := threeOrdinals(mode)
					sc.Seed = seed
					w := newWorld(sc)
					claim := "data-web-2" // the first that leaves
					if direction == plans.Abort {
						walk(t, w, plans.Move, nil)
						w.rest()
						claim = "data-web-0"
					}
					if mode == plans.Reimport && side == plans.Destination && direction == plans.Move {
						continue // its cluster has no object of the volume yet
					}
					name := w.leaveAttached(side, claim)
					w.rest()
					r := w.process()
					got, err := r.run(t.Context(), direction, nil)
					if err != nil || w.inFlight() || !asksAbout(got, name) {
						t.Fatalf("%s, %s, on the %s: in flight %t, %s, %v", mode, direction, side, w.inFlight(), got, err)
					}
					again := w.process()
					again.word = plans.Assurance{NodeGone: goneNode}
					if got, err := again.run(t.Context(), direction, nil); err != nil || got.kind != engine.Finished {
						t.Errorf("%s, %s, on the %s, with the user's word: %s, %v", mode, direction, side, got, err)
					}
					w.rest()
					unbroken(t, w)
				}
			}
		}
	}
}

// asksAbout reports whether a run waits for an attachment, and tells the user how to go on.
func asksAbout(got end, attached string) bool {
	return got.kind == engine.Waiting && strings.Contains(got.reason, attached) && strings.Contains(got.reason, "--node-gone "+goneNode)
}

// The driver removes it after all: the plan goes on by itself.
func TestAnAttachmentThatIsRemovedLetsTheWaveLeave(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		name := w.leaveAttached(plans.Source, "data-web-2")
		r := w.process()
		removed := false
		got, err := r.run(t.Context(), plans.Move, func(p engine.Progress) bool {
			if p.Kind == engine.Waiting && strings.Contains(p.Reason, name) && !removed {
				removed = true
				w.on[plans.Source].remove(key{"VolumeAttachment", "", name})
			}
			return false
		})
		if err != nil || got.outcome != plans.Moved || !removed {
			t.Errorf("%s: %s, %v, removed %t", mode, got, err, removed)
		}
		unbroken(t, w)
	}
}

// A word that was given for one cluster is not believed of a node of that name in the other one (S1).
func TestAWordAboutANodeIsOfTheClusterThatHasTheAttachment(t *testing.T) {
	t.Parallel()
	w := newWorld(threeOrdinals(plans.Reimport))
	walk(t, w, plans.Move, nil)
	w.rest()
	for _, side := range plans.Sides() {
		w.leaveAttached(side, "data-web-0")
	}
	for _, side := range []plans.Side{plans.Destination, plans.Source} { // the cluster that is left is asked about first
		got, err := w.process().run(t.Context(), plans.Abort, nil)
		if err != nil || got.kind != engine.Waiting || w.inFlight() || !strings.Contains(got.reason, "on the "+string(side)+", ") {
			t.Fatalf("expected a wait for the %s: %s, %v", side, got, err)
		}
		r := w.process()
		r.word = plans.Assurance{NodeGone: goneNode}
		got, err = r.run(t.Context(), plans.Abort, nil)
		if waits := got.kind == engine.Waiting && !w.inFlight(); err != nil || waits != (side == plans.Destination) {
			t.Fatalf("with the user's word about the %s: %s, %v", side, got, err)
		}
	}
	if w.journal.Outcome != plans.Aborted {
		t.Errorf("the abort has not ended: %s", w.journal.Outcome)
	}
	unbroken(t, w)
}
