package simulation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/recovery"
	"github.com/stsmigrate/stsmigrate/internal/engine/verify"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// verified returns the differences that `stsmigrate verify` finds now.
func (w *world) verified(t *testing.T) []string {
	t.Helper()
	on := clusters.Clusters{}
	for side, s := range w.on {
		on[side] = s
	}
	report, err := verify.Plan(t.Context(), clusters.Pair{Plan: w.plan, On: on}, records.NewStore(w.on[plans.Destination], green, planName), time.Now)
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

// So is one that turns back before any of its steps, and one whose journal was lost there and is rebuilt.
func TestAPlanThatTurnsBackAnywhereHasNoDifferences(t *testing.T) {
	t.Parallel()
	worlds := map[string]options{}
	for _, mode := range modes() {
		worlds[string(mode)] = threeOrdinals(mode)
	}
	for name, sc := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; !t.Failed(); n++ {
				w, looks := newWorld(sc), 0
				_, err := w.process().run(t.Context(), plans.Move, func(engine.Progress) bool { looks++; return looks > n })
				if err != nil {
					t.Fatal(err)
				}
				if w.journal.Outcome != "" {
					return
				}
				if lost := w.fork(uint64(n)); n%3 == 0 && len(lost.marked()) > 0 {
					lost.lose(true)
					lost.recovers(t, recovery.Said{})
					lost.undisturbed(t, fmt.Sprintf("recovered after look %d of the move", n))
				}
				w.undisturbed(t, fmt.Sprintf("after look %d of the move", n))
			}
		})
	}
}

// undisturbed aborts the plan, and requires that no difference is found at any look.
func (w *world) undisturbed(t *testing.T, where string) {
	t.Helper()
	look := func(p engine.Progress) bool {
		for _, d := range w.verified(t) {
			t.Errorf("%s, after %s %s of the abort: %s", where, p.Kind, p.Step.ID(), d)
		}
		return t.Failed()
	}
	look(engine.Progress{})
	if got, err := w.process().run(t.Context(), plans.Abort, look); !t.Failed() && (err != nil || w.journal.Outcome != plans.Aborted) {
		t.Errorf("%s: the abort ended with %q (%v)", where, got, err)
	}
	w.rest()
	look(engine.Progress{})
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
		"the mark is taken off the source":   "S12: StatefulSet blue/web on the source: it carries no mark of a plan",
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

// What others change is also found while the plan waits for its user, or has no step left that would look at it.
func TestForeignChangesThatNoStepWouldMeetAreFoundByVerify(t *testing.T) {
	t.Parallel()
	two := int32(2)
	deletes := func(s *appsv1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: "Delete", WhenScaled: "Delete"}
	}
	for name, c := range map[string]struct {
		until     *int32 // the move ends there
		direction plans.Direction
		after     string // the step of the direction; "" for its end
		do        func(*world)
		want      []string
	}{
		"a volume lost its protection, and its ordinal waits for its way back": {
			nil, plans.Abort, "0/Grow", exposes("data-web-2"),
			[]string{"S4: claim data-web-2: none of its volumes", "S4: PersistentVolume pvc-disk-3 on the source: its reclaim policy is Delete"},
		},
		"a volume lost its protection, and its ordinal is back": {
			nil, plans.Abort, "2/Tighten", exposes("data-web-0"),
			[]string{"S4: claim data-web-0: none of its volumes", "S4: PersistentVolume pvc-disk-1 on the source: its reclaim policy is Delete"},
		},
		"the destination deletes its claims, moved": {nil, plans.Move, "", change(plans.Destination, setName, deletes), []string{"S4: StatefulSet green/web"}},
		"the source deletes its claims, split":      {&two, plans.Move, "", change(plans.Source, setName, deletes), []string{"S4: StatefulSet blue/web"}},
		"the destination lost its mark, moved": {
			nil, plans.Move, "", change(plans.Destination, setName, func(s *appsv1.StatefulSet) { plans.Unmark(s) }),
			[]string{"S12: StatefulSet green/web on the destination: it carries no mark of a plan"},
		},
		"the source's budget is recreated": {nil, plans.Move, "1/Tighten", func(w *world) {
			w.on[plans.Source].remove(key{"PodDisruptionBudget", blue, "web-budget"})
			remakeBudget(w)
		}, []string{"S12: PodDisruptionBudget blue/web-budget on the source: it has no annotation"}},
		"the destination's budget is deleted, moved": {nil, plans.Move, "", func(w *world) {
			w.on[plans.Destination].remove(key{"PodDisruptionBudget", green, "web-budget"})
		}, []string{"S3: PodDisruptionBudget web-budget of green/web"}},
	} {
		for _, mode := range modes() {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(threeOrdinals(mode))
				if c.direction == plans.Abort {
					walk(t, w, plans.Move, nil)
				}
				if c.until != nil {
					w.take(t, plans.Limits{Until: c.until})
				}
				got, err := w.process().run(t.Context(), c.direction, func(p engine.Progress) bool { return p.Kind == engine.Advanced && p.Step.ID() == c.after })
				if err != nil {
					t.Fatalf("it ended with %q (%v)", got, err)
				}
				if before := w.verified(t); len(before) > 0 {
					t.Fatalf("before the change: %q", before)
				}
				w.foreign = true
				c.do(w)
				found := w.verified(t)
				for _, want := range c.want {
					if !strings.Contains(strings.Join(found, "\n"), want) {
						t.Errorf("found %q, expected %q", found, want)
					}
				}
			})
		}
	}
}

// exposes takes the marks and the protection off every volume object of a claim, in both clusters.
func exposes(claim string) func(*world) {
	return func(w *world) {
		for _, s := range w.stores {
			for _, pv := range all[*corev1.PersistentVolume](s) {
				if w.disks[diskOf(pv)].claim == claim {
					next := clone(pv)
					plans.Unmark(next)
					next.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
					s.put(next)
				}
			}
		}
	}
}
