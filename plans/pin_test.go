package plans

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A set that was pinned has exactly the strategy from before (S15), and one that another writer has changed keeps that.
func TestASetThatWasPinnedHasItsOwnStrategyAgain(t *testing.T) {
	two, zero := int32(2), int32(0)
	half := intstr.FromString("50%")
	for name, s := range map[string]appsv1.StatefulSetUpdateStrategy{
		"nothing":              {},
		"no block":             {Type: appsv1.RollingUpdateStatefulSetStrategyType},
		"an empty block":       {Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{}},
		"0":                    {Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &zero}},
		"a canary":             {Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &two, MaxUnavailable: &half}},
		"maxUnavailable alone": {Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &half}},
		"that of slices":       {Type: enforcedRollingUpdate, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &zero}},
	} {
		set := &appsv1.StatefulSet{}
		set.Spec.UpdateStrategy = *s.DeepCopy()
		if Pinned(set) {
			t.Errorf("%s: it is pinned before", name)
		}
		Pin(set)
		if r := set.Spec.UpdateStrategy.RollingUpdate; !Pinned(set) || PinChanged(set) || PinLost(set) || r == nil || *r.Partition != AboveAll {
			t.Errorf("%s: it is not pinned: %+v", name, set)
		}
		if free := Unpinned(set); plain(t, free.Spec.UpdateStrategy) != plain(t, s) {
			t.Errorf("%s: freed it has %s", name, plain(t, free.Spec.UpdateStrategy))
		}
		changed := set.DeepCopy()
		changed.Spec.UpdateStrategy.RollingUpdate.Partition = &two
		if err := Unpin(changed); err != nil || *changed.Spec.UpdateStrategy.RollingUpdate.Partition != 2 || len(changed.Annotations) != 0 {
			t.Errorf("%s: what another writer has set is lost: %+v (%v)", name, changed, err)
		}
		if err := Unpin(set); err != nil || plain(t, set.Spec.UpdateStrategy) != plain(t, s) || len(set.Annotations) != 0 {
			t.Errorf("%s: it has %s, expected %s (%v)", name, plain(t, set.Spec.UpdateStrategy), plain(t, s), err)
		}
	}
}

// Where a user deletes each pod that is to be replaced, nothing is to be pinned.
func TestASetWhosePodsAreReplacedByHandCountsAsPinned(t *testing.T) {
	set := &appsv1.StatefulSet{}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	if !Pinned(set) || PinLost(set) || PinChanged(set) {
		t.Error("a set with OnDelete does not count as pinned")
	}
}

func plain(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A set that is pinned, and that another writer has changed, is none that is pinned.
func TestWhatBecomesOfAPinIsSeen(t *testing.T) {
	two, above := int32(2), AboveAll
	for name, c := range map[string]struct {
		change                func(*appsv1.StatefulSet)
		pinned, changed, lost bool
	}{
		"nothing":       {func(*appsv1.StatefulSet) {}, true, false, false},
		"the partition": {func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = &two }, false, true, false},
		"the block":     {func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate = nil }, false, true, false},
		"the strategy": {func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: "OnDelete"}
		}, true, false, false},
		"the annotation":       {func(s *appsv1.StatefulSet) { s.Annotations = nil }, false, false, true},
		"both":                 {func(s *appsv1.StatefulSet) { s.Annotations, s.Spec.UpdateStrategy.RollingUpdate = nil, nil }, false, false, false},
		"a pause of its owner": {func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{PausedAnnotation: "0"} }, false, false, false},
	} {
		set := &appsv1.StatefulSet{}
		Pin(set)
		c.change(set)
		if Pinned(set) != c.pinned || PinChanged(set) != c.changed || PinLost(set) != c.lost {
			t.Errorf("%s: pinned %t, changed %t, lost %t", name, Pinned(set), PinChanged(set), PinLost(set))
		}
	}
	for _, was := range []string{"", "-1", "all", "3000000000"} {
		set := &appsv1.StatefulSet{}
		set.Annotations = map[string]string{PinnedAnnotation: was}
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &above}
		if err := Unpin(set); err == nil {
			t.Errorf("%q is taken for a partition", was)
		}
	}
}

// A wave that is all of a set leaves nothing to pin.
func TestASetWithoutOtherOrdinalsIsNotPinned(t *testing.T) {
	for wave, want := range map[Slice]bool{{Start: 2, Replicas: 3}: false, {Start: 4, Replicas: 1}: true, {Start: 7, Replicas: 1}: true, {Start: 1, Replicas: 9}: false} {
		set, n := &appsv1.StatefulSet{}, int32(3)
		set.Spec.Replicas, set.Spec.Ordinals = &n, &appsv1.StatefulSetOrdinals{Start: 2}
		if got := Others(set, wave); got != want {
			t.Errorf("%s: %t", wave, got)
		}
	}
}

// A source that is pinned is the one that the plan was made for.
func TestAPinnedSourceIsTheSame(t *testing.T) {
	n := int32(3)
	for _, s := range []appsv1.StatefulSetUpdateStrategy{{}, {RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}}} {
		set := &appsv1.StatefulSet{}
		set.UID, set.Spec.Replicas, set.Spec.UpdateStrategy = "u", &n, s
		f, err := Fingerprints(set, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &Plan{Count: 3}
		Pin(set)
		if same, err := f.SameSource(set, p, Saved{}); err != nil || !same {
			t.Errorf("%+v: %t, %v", s, same, err)
		}
		set.Spec.MinReadySeconds = 5
		if same, err := f.SameSource(set, p, Saved{}); err != nil || same {
			t.Errorf("%+v, and another field: %t, %v", s, same, err)
		}
	}
}
