package simulation

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

func modes() []plans.Mode { return []plans.Mode{plans.Rebind, plans.Reimport} }

// journey lists the directions of one migration, in their order.
type journey []plans.Direction

func (j journey) name() string {
	out := ""
	for _, c := range j {
		out += string(c)
	}
	return out
}

func journeys() []journey {
	return []journey{{plans.Move, plans.Finalize}, {plans.Move, plans.Abort}}
}

// eachVariant plays both journeys in a world of each variant that is played today, one of five.
func eachVariant(t *testing.T, play func(t *testing.T, w *world, j journey)) {
	t.Helper()
	all := variants()
	for k, name := range slices.Sorted(maps.Keys(all)) {
		for _, j := range journeys() {
			if !fifth.plays(k) {
				continue
			}
			t.Run(name+", "+j.name(), func(t *testing.T) {
				t.Parallel()
				play(t, newWorld(all[name]), j)
			})
		}
	}
}

func outcomeOf(c plans.Direction) plans.Outcome { return c.Outcome() }

// walk runs a direction to its end, with a new process after each that dies.
func walk(t *testing.T, w *world, direction plans.Direction, at func(int) fault) {
	t.Helper()
	for range 10 {
		r := w.process()
		r.at = at
		got, err := r.run(t.Context(), direction, nil)
		if r.dead || errors.Is(err, errDead) {
			continue
		}
		if w.journal.Ended() && w.journal.Outcome == outcomeOf(direction) {
			got, err = end{engine.Finished, w.journal.Outcome, ""}, nil
		}
		if err != nil || got.kind != engine.Finished || got.outcome != outcomeOf(direction) {
			t.Errorf("seed %d: %s ended with %q (%v); journal: %+v", w.options.Seed, direction, got, err, w.journal)
		}
		unbroken(t, w)
		return
	}
	t.Fatal("no process lives long enough")
}

func unbroken(t *testing.T, w *world) {
	t.Helper()
	for _, b := range w.broken {
		t.Errorf("seed %d: %s", w.options.Seed, b)
	}
	if len(w.broken) > 0 {
		t.Log("the last writes were:\n" + strings.Join(w.trail[max(0, len(w.trail)-40):], "\n"))
	}
	if t.Failed() {
		t.FailNow()
	}
}

// cleanEnd is S15: no mark of ours remains, and everything else equals want.
func cleanEnd(t *testing.T, w *world, want map[string]any) {
	t.Helper()
	w.rest()
	unbroken(t, w)
	if marks := w.marked(); len(marks) > 0 {
		t.Errorf("seed %d: S15: our marks are still on %q", w.options.Seed, marks)
	}
	if diff := cmp.Diff(want, w.snapshot()); diff != "" {
		t.Errorf("seed %d: S15: the end is not as it has to be (-want +got):\n%s", w.options.Seed, diff)
	}
}

// golden is the result of a run without faults.
type golden struct {
	end    map[string]any
	counts map[string]int
	writes int
}

func goldenOf(t *testing.T, w *world, j journey) golden {
	t.Helper()
	for _, c := range j {
		walk(t, w, c, nil)
	}
	w.rest()
	unbroken(t, w)
	return golden{w.snapshot(), w.counts(), w.writes}
}

func TestFinalizeRestoresTheSettingsOfTheSource(t *testing.T) {
	t.Parallel()
	for name, sc := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(sc)
			before := w.belongings(plans.Source)
			walk(t, w, plans.Move, nil)
			walk(t, w, plans.Finalize, nil)
			w.rest()
			unbroken(t, w)
			if marks := w.marked(); len(marks) > 0 {
				t.Errorf("S15: our marks are still on %q", marks)
			}
			if diff := cmp.Diff(before, w.belongings(plans.Destination)); diff != "" {
				t.Errorf("the destination differs from what the source was (-source +destination):\n%s", diff)
			}
			if left := w.belongings(plans.Source); left.Set != nil || len(left.Claims)+len(left.Pods) > 0 {
				t.Errorf("the source still has %+v", left)
			}
		})
	}
}

func TestAnAbortedMoveLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	for name, sc := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(sc)
			walk(t, w, plans.Move, nil)
			walk(t, w, plans.Abort, nil)
			cleanEnd(t, w, w.start)
		})
	}
}

// belongings is everything that a set has, without its namespace.
type belongings struct {
	Set     *appsv1.StatefulSetSpec
	Labels  map[string]string
	Budget  *policyv1.PodDisruptionBudgetSpec
	Claims  map[string]corev1.PersistentVolumeClaimSpec
	Disks   map[string]string // the disk behind each claim, and its reclaim policy
	Pods    []string
	Configs int
}

func (w *world) belongings(side plans.Side) belongings {
	s, namespace := w.on[side], w.namespace(side)
	out := belongings{Claims: map[string]corev1.PersistentVolumeClaimSpec{}, Disks: map[string]string{}}
	if set, ok := get[*appsv1.StatefulSet](s, namespace, setName); ok {
		out.Set, out.Labels = &clone(set).Spec, set.Labels
		if w.options.Existing { // an existing set keeps its own retention policy
			out.Set.PersistentVolumeClaimRetentionPolicy = nil
		}
		if o := out.Set.Ordinals; o != nil && o.Start == 0 {
			out.Set.Ordinals = nil
		}
	}
	if b, ok := get[*policyv1.PodDisruptionBudget](s, namespace, "web-budget"); ok {
		out.Budget = &clone(b).Spec
	}
	for _, c := range all[*corev1.PersistentVolumeClaim](s) {
		if pv, ok := get[*corev1.PersistentVolume](s, "", c.Spec.VolumeName); ok && c.Namespace == namespace {
			out.Claims[c.Name] = c.Spec
			out.Disks[c.Name] = diskOf(pv) + " " + string(pv.Spec.PersistentVolumeReclaimPolicy)
		}
	}
	for _, p := range all[*corev1.Pod](s) {
		if p.Namespace == namespace && ready(p) {
			out.Pods = append(out.Pods, p.Name)
		}
	}
	for _, cm := range all[*corev1.ConfigMap](s) {
		if cm.Namespace == namespace && cm.Labels[plans.PlanLabel] == "" {
			out.Configs++
		}
	}
	return out
}
