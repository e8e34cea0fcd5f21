package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// change changes the set of a side as a user does, if there is one.
func (w *world) changeSet(side plans.Side, how func(*appsv1.StatefulSet)) {
	set, there := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName)
	if !there {
		return
	}
	next := clone(set)
	how(next)
	must(w.on[side].Update(context.TODO(), next))
}

// restarts is what `kubectl rollout restart` does, and a controller that restarts pods for a ConfigMap.
func restarts(set *appsv1.StatefulSet) {
	set.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
}

// upgrades gives a set another image.
func upgrades(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "db:2" }

// rolling is a world whose set has a partition of its own, or none.
func rolling(mode plans.Mode, parallel bool) options {
	sc := threeOrdinals(mode)
	sc.Parallel = parallel
	return sc
}

// A template that changes at any moment, on either side, takes no pod down beside a wave (S2). On a restart the plan
// goes on when the pods are replaced; on another image it waits until both sets have it.
func TestATemplateThatChangesTakesNoOrdinalDownBesideAWave(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*appsv1.StatefulSet){"a restart": restarts, "an upgrade": upgrades}
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, side := range plans.Sides() {
				for what, change := range changes {
					t.Run(fmt.Sprintf("%s, %s, %s of the %s", mode, direction, what, side), func(t *testing.T) {
						t.Parallel()
						for _, parallel := range []bool{false, true} {
							everyMoment(t, rolling(mode, parallel), direction, func(w *world, n int) { w.rollsAt(t, direction, side, n, change) })
						}
					})
				}
			}
		}
	}
}

// everyMoment plays a direction once for each of its moments.
func everyMoment(t *testing.T, sc options, direction plans.Direction, play func(w *world, moment int)) {
	t.Helper()
	first, moments := newWorld(sc), 0
	if direction == plans.Abort {
		walk(t, first, plans.Move, nil)
		first.rest()
	}
	if _, err := first.fork(0).process().run(t.Context(), direction, func(engine.Progress) bool { moments++; return false }); err != nil {
		t.Fatal(err)
	}
	for n := range moments {
		if !tenth.plays(n) {
			continue
		}
		play(first.fork(uint64(n)), n)
		if t.Failed() {
			t.Fatalf("that was moment %d of %d: %+v", n, moments, sc)
		}
	}
}

// rollsAt changes the template of a side at a moment of a direction, and goes on to the end.
func (w *world) rollsAt(t *testing.T, direction plans.Direction, side plans.Side, moment int, change func(*appsv1.StatefulSet)) {
	t.Helper()
	w.rolls = true
	n := 0
	at := func(engine.Progress) bool {
		if n == moment {
			w.changeSet(side, change)
		}
		n++
		return false
	}
	got, err := w.process().run(t.Context(), direction, at)
	w.rest()
	unbroken(t, w)
	if err == nil && got.kind == engine.Waiting && strings.Contains(got.reason, "--other-template") {
		w.stillPinned(t)
		for _, s := range plans.Sides() {
			w.changeSet(s, change)
		}
		w.rest()
		got, err = w.process().run(t.Context(), direction, nil)
		w.rest()
	}
	ended := err == nil && got.kind == engine.Finished
	outdated := got.kind == engine.Blocked && w.journal.Begun < 8 // it was made for another template, and has not begun
	if !ended && !outdated {
		t.Errorf("it ends with %q (%v)", got, err)
	}
	unbroken(t, w)
	w.stillPinned(t)
}

// stillPinned reports sets that are pinned although no wave is away (S15).
func (w *world) stillPinned(t *testing.T) {
	t.Helper()
	for _, side := range plans.Sides() {
		set, there := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName)
		if !there {
			continue
		}
		_, noted := set.Annotations[plans.PinnedAnnotation]
		if r := set.Spec.UpdateStrategy.RollingUpdate; noted || r != nil && r.Partition != nil && *r.Partition == plans.AboveAll {
			t.Errorf("the set of the %s is pinned: %+v, %v", side, set.Spec.UpdateStrategy, set.Annotations)
		}
	}
}

// partition returns that of the source, or -1.
func (w *world) partition() int32 {
	set, _ := get[*appsv1.StatefulSet](w.on[plans.Source], blue, setName)
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return -1
}

// easedAndResumed lets the process that was blocked ease, and another one go on.
func (w *world) easedAndResumed(t *testing.T) (end, error) {
	t.Helper()
	e, err := w.process().takeOver(t.Context(), plans.Move)
	if err == nil {
		err = e.Ease(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.process().run(t.Context(), plans.Move, nil)
}

// A partition that another writer sets while its set is pinned is not overwritten (S12): before the wave leaves it blocks
// the plan, afterwards `verify` finds it, and the user has it at the end.
func TestAPartitionThatIsChangedInMidWaveStays(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for op, blocks := range map[plans.Op]bool{plans.Tighten: true, plans.Vacate: false, plans.Grow: false} {
			for seed := range uint64(2) {
				sc := threeOrdinals(mode)
				sc.Seed = seed
				w := newWorld(sc)
				w.rolls = true
				w.partitionStays(t, mode, op, blocks)
			}
		}
	}
}

// partitionStays sets the partition of the source when the step of the first wave is done. blocks reports that the wave has
// not left then.
func (w *world) partitionStays(t *testing.T, mode plans.Mode, op plans.Op, blocks bool) {
	t.Helper()
	two := int32(2)
	canary := func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &two}
	}
	changed := func(p engine.Progress) bool {
		return p.Kind == engine.Advanced && p.Step.Op == op && p.Step.Ordinals.Has(2)
	}
	if got, err := w.process().run(t.Context(), plans.Move, changed); err != nil {
		t.Fatal(got, err)
	}
	w.changeSet(plans.Source, canary)
	w.rest()
	if found := strings.Join(w.verified(t), "\n"); !strings.Contains(found, "S12: StatefulSet blue/web on the source: its updateStrategy was changed while it was pinned") {
		t.Errorf("%s, after %s: verify finds %q", mode, op, found)
	}
	w.foreign = blocks // it may hold the plan
	got, err := w.process().run(t.Context(), plans.Move, nil)
	if blocks {
		if got.kind != engine.Blocked || err != nil || w.up(plans.Source) != 3 || !strings.Contains(got.reason, "updateStrategy was changed meanwhile") {
			t.Errorf("%s, after %s: %s (%v)", mode, op, got, err)
		}
		got, err = w.easedAndResumed(t)
	}
	if err != nil || got.kind != engine.Finished {
		t.Errorf("%s, after %s: %s (%v)", mode, op, got, err)
	}
	walk(t, w, plans.Abort, nil)
	w.rest()
	unbroken(t, w)
	w.stillPinned(t)
	if p := w.partition(); p != 2 {
		t.Errorf("%s, after %s: the user's partition is lost: %d", mode, op, p)
	}
}

// A wave that is away is brought back, or goes on, also where a user has changed the partition of either set meanwhile: that
// stops no wave but one that has not left.
func TestAWaveIsBroughtBackAlthoughAPartitionWasChanged(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, side := range plans.Sides() {
			for _, op := range []plans.Op{plans.Shrink, plans.Vacate, plans.Claim, plans.Grow} {
				w := newWorld(threeOrdinals(mode))
				w.rolls = true
				away := func(p engine.Progress) bool {
					return p.Kind == engine.Advanced && p.Step.Op == op && p.Step.Ordinals.Has(1) // both sets have others
				}
				if got, err := w.process().run(t.Context(), plans.Move, away); err != nil {
					t.Fatal(got, err)
				}
				w.changeSet(side, func(set *appsv1.StatefulSet) {
					set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}
				})
				w.rest()
				got, err := w.process().run(t.Context(), plans.Abort, nil)
				if away := w.inFlight(); away || w.up(plans.Source)+w.up(plans.Destination) != 3 {
					t.Errorf("%s, %s, after %s: %s (%v); ordinal 1 is away: %t", mode, side, op, got, err, away)
				}
			}
		}
	}
}
