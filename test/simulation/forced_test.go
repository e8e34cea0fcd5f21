package simulation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A colleague deletes a pod by force while it ends, and its volume is never attached. The other side does not start before
// the grace period of the pod is over, whoever counts, also if the process dies meanwhile; then the plan goes on (S1).
func TestAPodThatIsDeletedByForceKeepsAVolumeThatIsNeverAttached(t *testing.T) {
	t.Parallel()
	played := 0
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for seed := range uint64(6) {
				sc := threeOrdinals(mode)
				sc.Unattached, sc.Seed = true, seed
				w := newWorld(sc)
				from, ordinal := plans.Source, int32(2)
				if direction == plans.Abort {
					patiently(t, w, plans.Move)
					from, ordinal = plans.Destination, 0
				}
				now := time.Unix(1000, 0)
				forced := false
				r := w.process()
				r.clock = func() time.Time { return now }
				got, err := r.run(t.Context(), direction, func(engine.Progress) bool {
					forced = forced || w.forces(from, ordinal)
					return false
				})
				if !forced {
					continue // the kubelet was faster
				}
				played++
				waits := func(after string) {
					t.Helper()
					if err != nil || !waitsForAnEnd(got) || w.pod(from.Other(), ordinal) != nil {
						t.Fatalf("%s, %s, seed %d, %s: %s, %v", mode, direction, seed, after, got, err)
					}
				}
				waits("at once")
				for _, after := range []string{"a new process", "almost its time"} { // which counts anew: it does not know when the pod went
					again := w.process()
					start := now
					again.clock = func() time.Time { return now }
					got, err = again.run(t.Context(), direction, func(p engine.Progress) bool {
						if p.Kind == engine.Waiting && p.ID == reasons.PodEndNotSeen && after == "almost its time" {
							now = start.Add(29 * time.Second)
						}
						return false
					})
					waits(after)
				}
				patiently(t, w, direction)
				unbroken(t, w)
			}
		}
	}
	if played < 8 {
		t.Errorf("a pod was deleted by force %d times only", played)
	}
}

// forces deletes the pod of an ordinal by force, if it is ending and still runs. It reports whether it did.
func (w *world) forces(side plans.Side, ordinal int32) bool {
	pod := w.pod(side, ordinal)
	if pod == nil || pod.DeletionTimestamp == nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	w.on[side].remove(keyOf(pod))
	return true
}

// waitsForAnEnd reports whether a run waits because a pod has gone before its end was seen.
func waitsForAnEnd(got end) bool {
	return got.kind == engine.Waiting && strings.Contains(got.reason, "as after a forced deletion")
}

// Volumes that are never attached move there and back. A pod may have gone before its end was seen: then its grace period
// is waited for.
func TestVolumesThatAreNeverAttachedMoveThereAndBack(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for seed := range uint64(10) {
			sc := threeOrdinals(mode)
			sc.Unattached, sc.Seed = true, 2*seed+1 // it reads everything live
			w := newWorld(sc)
			patiently(t, w, plans.Move)
			patiently(t, w, plans.Abort)
			unbroken(t, w)
		}
	}
}

// patiently carries a plan out by a clock that goes on while a grace period is waited for.
func patiently(t *testing.T, w *world, direction plans.Direction) {
	t.Helper()
	now := time.Unix(1000, 0)
	r := w.process()
	r.clock = func() time.Time { return now }
	got, err := r.run(t.Context(), direction, func(p engine.Progress) bool {
		if p.Kind == engine.Waiting && p.ID == reasons.PodEndNotSeen {
			now = now.Add(30 * time.Second)
		}
		return false
	})
	if err != nil || got.kind != engine.Finished {
		t.Fatalf("seed %d: %s: %s, %v", w.options.Seed, direction, got, err)
	}
	w.rest()
}
