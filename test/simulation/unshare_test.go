package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Another writer deletes the claim of a shared volume on the side that keeps it, while pods mount it. A deletion cannot be
// undone, and neither a finalize nor an abort can be left at its end: docs/ways-out.md has the way to an end (L6).
func TestAPlanEndsWithASharedClaimThatWasRecreated(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Finalize, plans.Abort} {
			t.Run(fmt.Sprintf("%s, %s", mode, direction), func(t *testing.T) {
				t.Parallel()
				sc := threeOrdinals(mode)
				sc.Shared = true
				w := newWorld(sc)
				walk(t, w, plans.Move, nil)
				keeper, volume := plans.Destination, w.second()
				if direction == plans.Abort {
					keeper, volume = plans.Source, media
				}
				s, did := w.on[keeper], false
				got, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
					if !did && p.Step.Op == plans.Retire {
						did, w.foreign = true, true
						claim, _ := get[*corev1.PersistentVolumeClaim](s, w.namespace(keeper), media)
						must(s.Delete(context.TODO(), claim))
					}
					return false
				})
				w.stays(t, keeper, got, err, reasons.SharedClaimDeleted)
				w.forsake(keeper)
				got, err = w.process().run(t.Context(), direction, nil)
				w.stays(t, keeper, got, err, reasons.SharedClaimDeleted) // it is gone
				w.recreateMedia(t, keeper, volume)
				walk(t, w, direction, nil)
				w.rest()
				unbroken(t, w)
				claim, ok := get[*corev1.PersistentVolumeClaim](s, w.namespace(keeper), media)
				pv, there := get[*corev1.PersistentVolume](s, "", volume)
				if !ok || !there || claim.Status.Phase != corev1.ClaimBound || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || w.disks["/media"].destroyed {
					t.Errorf("claim %v, volume %v, destroyed: %t", claim, pv, w.disks["/media"].destroyed)
				}
				if _, ok := get[*corev1.PersistentVolumeClaim](w.on[keeper.Other()], w.namespace(keeper.Other()), media); ok {
					t.Errorf("the other side still has its claim")
				}
				if marks := w.marked(); len(marks) > 0 {
					t.Errorf("our marks are still on %q", marks)
				}
			})
		}
	}
}

// Another writer deletes the volume object of the side that keeps a shared disk, just before the end. Nothing of the other
// side is given up before the object is there again, or before a user has put another disk in its place: then the former
// one keeps its data (S4), and no mark (S15).
func TestAPlanKeepsTheLastObjectOfASharedDisk(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, replaced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, replaced: %t", mode, replaced), func(t *testing.T) {
				t.Parallel()
				sc := threeOrdinals(mode)
				sc.Shared = true
				w := newWorld(sc)
				walk(t, w, plans.Move, nil)
				s := w.on[plans.Destination]
				gone, _ := get[*corev1.PersistentVolume](s, "", w.second())
				got, err := w.process().run(t.Context(), plans.Finalize, func(p engine.Progress) bool {
					if !w.foreign && p.Step.Op == plans.Retire {
						w.foreign = true
						s.remove(keyOf(gone))
					}
					return false
				})
				if _, ok := get[*corev1.PersistentVolumeClaim](w.on[plans.Source], blue, media); err != nil || w.journal.BlockedID != reasons.VolumeDeleted || !ok {
					t.Fatalf("ended with %q (%v, %s); the source's claim is there: %t", got, err, w.journal.BlockedID, ok)
				}
				next := clone(gone)
				next.UID, next.ResourceVersion = "", ""
				if replaced {
					w.replaceMedia(t, next)
				} else {
					must(s.Create(w.process().stores[plans.Destination].by(t.Context()), next))
				}
				w.rest()
				walk(t, w, plans.Finalize, nil)
				w.rest()
				if marks := w.marked(); len(marks) > 0 || w.disks["/media"].destroyed {
					t.Errorf("our marks are still on %q, destroyed: %t", marks, w.disks["/media"].destroyed)
				}
				if _, ok := get[*corev1.PersistentVolumeClaim](w.on[plans.Source], blue, media); ok {
					t.Errorf("the source still has its claim")
				}
				if pv, ok := get[*corev1.PersistentVolume](w.on[plans.Source], "", media); ok != replaced || ok && pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
					t.Errorf("the source's volume is %v", pv)
				}
			})
		}
	}
}

// replaceMedia gives the shared claim of the destination another disk, with a volume like pv.
func (w *world) replaceMedia(t *testing.T, pv *corev1.PersistentVolume) {
	t.Helper()
	s := w.on[plans.Destination]
	claim, _ := get[*corev1.PersistentVolumeClaim](s, green, media)
	s.remove(keyOf(claim))
	pv.Name, pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.NFS.Path, pv.Spec.ClaimRef.UID = "another", corev1.PersistentVolumeReclaimRetain, "/other", ""
	w.disks["/other"] = disk{}
	next := &corev1.PersistentVolumeClaim{Spec: *claim.Spec.DeepCopy()}
	next.Namespace, next.Name, next.Spec.VolumeName = green, media, "another"
	plans.Unmark(pv)
	must(s.Create(t.Context(), pv))
	must(s.Create(t.Context(), next))
}

// The claim of an ordinal that another writer deletes at the end of a plan is not waited for once it is gone. The volume
// keeps the data (S4), and no mark (S15).
func TestAPlanEndsWithoutTheClaimThatWasDeletedAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w, did, volume := newWorld(threeOrdinals(mode)), false, ""
		walk(t, w, plans.Move, nil)
		s := w.on[plans.Destination]
		got, err := w.process().run(t.Context(), plans.Finalize, func(p engine.Progress) bool {
			if !did && p.Step.Op == plans.Retire {
				did, w.foreign = true, true
				claim, _ := get[*corev1.PersistentVolumeClaim](s, green, "data-web-1")
				volume = claim.Spec.VolumeName
				must(s.Delete(context.TODO(), claim))
			}
			return false
		})
		if err != nil || got.kind != engine.Blocked || w.journal.BlockedID != reasons.ClaimDeleted {
			t.Fatalf("%s: ended with %q (%v)", mode, got, err)
		}
		s.remove(keyOf(w.pod(plans.Destination, 1)))
		s.remove(key{"PersistentVolumeClaim", green, "data-web-1"})
		w.rest()
		walk(t, w, plans.Finalize, nil)
		w.rest()
		pv, ok := get[*corev1.PersistentVolume](s, "", volume)
		if !ok || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || w.disks[diskOf(pv)].destroyed {
			t.Errorf("%s: volume %s is %v", mode, volume, pv)
		}
		if marks := w.marked(); len(marks) > 0 {
			t.Errorf("%s: our marks are still on %q", mode, marks)
		}
	}
}

// stays requires that a run was blocked for a reason, and that the other side still has its part of the shared disk.
func (w *world) stays(t *testing.T, keeper plans.Side, got end, err error, want reasons.ID) {
	t.Helper()
	if err != nil || got.kind != engine.Blocked || w.journal.BlockedID != want {
		t.Fatalf("ended with %q (%v, %s), expected %s", got, err, w.journal.BlockedID, want)
	}
	if _, ok := get[*corev1.PersistentVolumeClaim](w.on[keeper.Other()], w.namespace(keeper.Other()), media); !ok {
		t.Fatalf("the other side has no claim any more")
	}
	for _, side := range plans.Sides() {
		name := map[plans.Side]string{plans.Source: media, plans.Destination: w.second()}[side]
		pv, ok := get[*corev1.PersistentVolume](w.on[side], "", name)
		if !ok || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Fatalf("volume %s of the %s is %v", name, side, pv)
		}
	}
}

// forsake deletes the pods that mount the shared claim of a side, and lets the claim go before others are there.
func (w *world) forsake(side plans.Side) {
	s := w.on[side]
	for _, p := range all[*corev1.Pod](s) {
		if p.Namespace == w.namespace(side) && storage.Mounts(p, media) {
			s.remove(keyOf(p))
		}
	}
	s.remove(key{"PersistentVolumeClaim", w.namespace(side), media})
	w.rest()
}

// recreateMedia does what docs/ways-out.md says: it reserves the volume for the next claim, as someone whom the policies
// let, and creates that from the one that is saved on the volume.
func (w *world) recreateMedia(t *testing.T, side plans.Side, volume string) {
	t.Helper()
	s, mover := w.on[side], w.process()
	pv, _ := get[*corev1.PersistentVolume](s, "", volume)
	next := clone(pv)
	next.Spec.ClaimRef.UID = ""
	must(s.Update(mover.stores[side].by(t.Context()), next))
	w.rest()
	var claim corev1.PersistentVolumeClaim
	must(json.Unmarshal([]byte(pv.Annotations[plans.ClaimAnnotation]), &claim))
	claim.Namespace, claim.Spec.VolumeName, claim.Spec.StorageClassName = w.namespace(side), volume, &pv.Spec.StorageClassName
	must(s.Create(t.Context(), &claim))
	w.rest()
}
