package simulation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A pod of another workload that names a claim of the set on the side that will receive it keeps the ordinal up, with
// nothing made, in both modes and on both ways. When it has gone, the plan goes on to its end (S20).
func TestAnOrdinalStaysUpWhileAnotherPodWaitsForItsClaim(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			t.Run(fmt.Sprintf("%s, %s", mode, direction), func(t *testing.T) {
				t.Parallel()
				w := newWorld(threeOrdinals(mode))
				to := plans.Destination
				if direction == plans.Abort {
					walk(t, w, plans.Move, nil)
					w.rest()
					to = plans.Source
				}
				w.foreign = true
				pod := w.stranger(to, 1)
				w.rest()
				got, err := w.process().run(t.Context(), direction, nil)
				w.rest()
				if err != nil || got.kind != engine.Waiting {
					t.Fatalf("ended with %q (%v)", got, err)
				}
				for _, want := range []string{"pod " + pod.Name, "Job nightly", "data-web-1", "delete"} {
					if !strings.Contains(got.reason, want) {
						t.Errorf("the reason %q does not say %q", got.reason, want)
					}
				}
				if !ready(w.pod(to.Other(), 1)) || w.inFlight() {
					t.Errorf("ordinal 1 is not up where it was")
				}
				if _, made := get[*corev1.PersistentVolumeClaim](w.on[to], w.namespace(to), "data-web-1"); made {
					t.Error("its claim was made")
				}
				if p, _ := get[*corev1.Pod](w.on[to], pod.Namespace, pod.Name); p == nil || p.Spec.NodeName != "" {
					t.Errorf("the other pod runs: %+v", p)
				}
				unbroken(t, w)
				w.dismiss()
				w.rest()
				walk(t, w, direction, nil)
			})
		}
	}
}

// A pod of another workload that comes with the ordinal in flight gets the disk no more than one that has waited: the
// claim is not made, or the set does not take the ordinal. Whoever does not want to wait can abort (S20, L6).
func TestAnotherPodDoesNotGetADiskInFlight(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, after := range []string{"Shrink", "Vacate", "Release", "Reserve", "Claim"} {
			for _, turns := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, after %s, turned %t", mode, after, turns), func(t *testing.T) {
					t.Parallel()
					w := newWorld(threeOrdinals(mode))
					did := false
					got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
						if !did && p.Kind == engine.Advanced && p.Step.ID() == "1/"+after {
							did, w.foreign = true, true
							w.stranger(plans.Destination, 1)
						}
						return false
					})
					w.rest()
					if err != nil || !did || got.kind != engine.Waiting || !strings.Contains(got.reason, "Job nightly") {
						t.Fatalf("ended with %q (%v); came %t", got, err, did)
					}
					if w.slice(plans.Destination).Has(1) {
						t.Error("the set has taken the ordinal")
					}
					unbroken(t, w)
					if !turns || after == "Claim" { // by then it mounts the claim, and abort waits for it too
						w.dismiss()
						w.rest()
					}
					direction := plans.Move
					if turns {
						direction = plans.Abort
					}
					walk(t, w, direction, nil)
				})
			}
		}
	}
}
