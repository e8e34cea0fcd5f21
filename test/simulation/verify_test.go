package simulation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/engine/verify"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// verified returns the differences that `stsmigrate verify` finds now.
func (w *world) verified(t *testing.T) []string {
	t.Helper()
	on := clusters.Clusters{}
	for side, s := range w.on {
		on[side] = s
	}
	report, err := verify.Plan(t.Context(), clusters.Pair{Plan: w.plan, On: on}, records.NewStore(w.on[plans.Destination], green, planName))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range report.Differences {
		out = append(out, fmt.Sprintf("%s: %s: %s, expected %s", d.Rule, d.Object, d.Seen, d.Expected))
	}
	return out
}

// A plan that nobody interferes with is at every moment as its journal says, in either direction, also when a
// process has died at any of its writes.
func TestAnUndisturbedPlanHasNoDifferences(t *testing.T) {
	t.Parallel()
	eachVariant(t, func(t *testing.T, w *world, j journey) { //nolint:thelper // it is the test itself
		where := "before the start"
		look := func(p engine.Progress) bool {
			for _, d := range w.verified(t) {
				t.Errorf("%s: %s", where, d)
			}
			where = fmt.Sprintf("after %s %s", p.Kind, p.Step.ID())
			return t.Failed()
		}
		look(engine.Progress{})
		for _, direction := range j {
			for deaths := range 10 {
				r, last := w.process(), w.writes+20+deaths
				r.at = func(n int) fault {
					if n == last && deaths < 9 {
						return []fault{crashBefore, crashAfter}[n%2]
					}
					return ""
				}
				_, err := r.run(t.Context(), direction, look)
				look(engine.Progress{})
				if r.dead && !w.journal.Ended() {
					continue
				}
				if !r.dead && err != nil || w.journal.Outcome != outcomeOf(direction) {
					t.Errorf("%s ended with %v; journal: %+v", direction, err, w.journal)
				}
				break
			}
		}
		w.rest()
		look(engine.Progress{})
	})
}

// What others change is found as long as it lasts, whichever step of the plan would meet it.
func TestForeignChangesAreFoundByVerify(t *testing.T) {
	t.Parallel()
	finds := map[string]string{
		"the source is scaled down":          "S7: StatefulSet blue/web",
		"the destination is scaled down":     "S7: StatefulSet green/web",
		"the destination is scaled up":       "S7: StatefulSet green/web",
		"the source is scaled up again":      "S7: StatefulSet blue/web",
		"a volume is set back to Delete":     "S4: PersistentVolume pvc-disk-2",
		"a volume is deleted":                "S4: PersistentVolume pvc-disk-2",
		"a claim is deleted":                 "S5: PersistentVolumeClaim blue/data-web-1",
		"the source's budget is deleted":     "S3: PodDisruptionBudget web-budget of blue/web",
		"the marks are taken off a volume":   "S4: claim data-web-1",
		"the source set is deleted":          "S12: StatefulSet blue/web",
		"the destination's budget is edited": "S12: PodDisruptionBudget green/web-budget",
	}
	for _, mode := range modes() {
		for name, want := range finds {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				t.Parallel()
				w, in := newWorld(threeOrdinals(mode)), interferences()[name]
				in.disturb(t, w)
				found := strings.Join(w.verified(t), "\n")
				if !strings.Contains(found, want) {
					t.Errorf("found %q, expected %q", found, want)
				}
			})
		}
	}
}
