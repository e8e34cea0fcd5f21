package simulation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// storages returns the options in which not every volume moves from claim to claim.
func storages() map[string]options {
	out := map[string]options{}
	for _, mode := range modes() {
		left := withGates(threeOrdinals(mode))
		left.Gates = left.Gates[3:4] // one gate after Grow, which is required to leave volumes behind
		left.Templates, left.Left = []string{"data", "log"}, []string{"log"}
		out["volumes left behind, "+string(mode)] = left
		shared := threeOrdinals(mode)
		shared.Shared = true
		out["a shared volume, "+string(mode)] = shared
	}
	return out
}

func TestADeathAtAnyWriteIsSurvivedWhateverVolumesDo(t *testing.T) {
	t.Parallel()
	for name, sc := range storages() {
		for _, j := range journeys() {
			t.Run(name+", "+j.name(), func(t *testing.T) {
				t.Parallel()
				everyWrite(t, newWorld(sc), j, false, []fault{crashAfter}, fifth, "a fault")
			})
		}
	}
}

func TestASharedVolumeBelongsToOneSideAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		sc := threeOrdinals(mode)
		sc.Shared = true
		first := newWorld(sc)
		back := first.fork(1)
		walk(t, back, plans.Move, nil)
		walk(t, back, plans.Abort, nil)
		cleanEnd(t, back, back.start)
		w := first.fork(2)
		walk(t, w, plans.Move, nil)
		for _, side := range plans.Sides() {
			if claim, ok := get[*corev1.PersistentVolumeClaim](w.on[side], w.namespace(side), media); !ok || claim.Status.Phase != corev1.ClaimBound {
				t.Errorf("%s: the %s has not its claim", mode, side)
			}
		}
		walk(t, w, plans.Finalize, nil)
		w.rest()
		unbroken(t, w)
		pv, ok := get[*corev1.PersistentVolume](w.on[plans.Destination], "", w.second())
		if !ok || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || w.disks["/media"].destroyed {
			t.Errorf("%s: the volume of the destination is %v, destroyed: %t", mode, pv, w.disks["/media"].destroyed)
		}
		if _, ok := get[*corev1.PersistentVolumeClaim](w.on[plans.Source], blue, media); ok {
			t.Errorf("%s: the source still has its claim", mode)
		}
	}
}

// A user replaces the disk of an ordinal between the move and its end. The old volume objects lose the marks of the plan
// (S15) and keep the data (S4).
func TestADiskThatWasReplacedIsLeftWithoutMarks(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		walk(t, w, plans.Move, nil)
		s := w.on[plans.Destination]
		claim, _ := get[*corev1.PersistentVolumeClaim](s, green, "data-web-1")
		old := claim.Spec.VolumeName
		w.foreign = true
		s.remove(keyOf(claim))
		s.remove(keyOf(w.pod(plans.Destination, 1)))
		w.rest()
		walk(t, w, plans.Finalize, nil)
		w.rest()
		if marks := w.marked(); len(marks) > 0 {
			t.Errorf("%s: S15: our marks are still on %q", mode, marks)
		}
		if said := w.journal.Unbound(); !strings.Contains(said, "volume "+old+" ") {
			t.Errorf("%s: the record of the end does not name volume %s: %q", mode, old, said)
		}
		for _, side := range plans.Sides() {
			pv, ok := get[*corev1.PersistentVolume](w.on[side], "", old)
			if !ok || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || w.disks[diskOf(pv)].destroyed {
				t.Errorf("%s: volume %s of the %s is %v", mode, old, side, pv)
			}
		}
	}
}

func TestVolumesThatAreLeftBehindStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		sc := storages()["volumes left behind, "+string(mode)]
		w := newWorld(sc)
		walk(t, w, plans.Move, nil)
		walk(t, w, plans.Abort, nil)
		w.rest()
		unbroken(t, w)
		for _, side := range plans.Sides() {
			claim, ok := get[*corev1.PersistentVolumeClaim](w.on[side], w.namespace(side), "log-web-1")
			if !ok || claim.Status.Phase != corev1.ClaimBound {
				t.Errorf("%s: claim log-web-1 of the %s is gone, or not bound", mode, side)
			}
		}
		if marks := w.marked(); len(marks) > 0 {
			t.Errorf("%s: our marks are still on %q", mode, marks)
		}
	}
}
