package sets

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// middle returns the scene of a wave of ordinal 3, with one ordinal on either side beside it.
func middle(op plans.Op) *scene {
	s := at(op, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 4, Replicas: 1})
	s.plan.Claims, s.claim = nil, nil
	s.moment.Ordinals.Start = 3
	for _, set := range []*appsv1.StatefulSet{s.source, s.destination} {
		if err := plans.Unpin(set); err != nil {
			panic(err)
		}
	}
	return s
}

func partition(set *appsv1.StatefulSet, n int32) {
	set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
}

func tightens(w Steps) plans.Look {
	w.Tighten = func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil }
	return w.Steadily
}

// Both sets are pinned before a wave leaves (S2), and what another writer makes of that is not overwritten (S12).
func TestSetsArePinnedBeforeAWaveLeaves(t *testing.T) {
	both := func(s *scene) { plans.Pin(s.source); plans.Pin(s.destination) }
	looks(t, func() *scene { return middle(plans.Tighten) }, tightens, map[string]seen{
		"neither is pinned":             {func(*scene) {}, plans.Before, "source: StatefulSet web: pin its rolling updates while web-3 may be away (partition 2147483647); destination: StatefulSet web: pin"},
		"the source is pinned":          {func(s *scene) { plans.Pin(s.source) }, plans.Before, "destination: StatefulSet web: pin"},
		"both are pinned":               {both, plans.After, ""},
		"the controller has not seen":   {func(s *scene) { both(s); s.destination.Status.ObservedGeneration = 2 }, plans.During, "to see generation 3"},
		"the partition was set back":    {func(s *scene) { both(s); partition(s.source, 0) }, plans.Conflict, "its updateStrategy was changed meanwhile by"},
		"the annotation was taken off":  {func(s *scene) { both(s); delete(s.source.Annotations, plans.PinnedAnnotation) }, plans.Before, "source: StatefulSet web: pin its rolling updates"},
		"a later process has it":        {stamped("web-abc/2/3"), plans.Conflict, "another process has taken the plan over"},
		"it lost the mark of the plan":  {func(s *scene) { s.source.Annotations = nil }, plans.Before, "destination: StatefulSet web: pin"},
		"pods are replaced by hand":     {func(s *scene) { s.source.Spec.UpdateStrategy.Type = "OnDelete"; plans.Pin(s.destination) }, plans.After, ""},
		"the wave is all of the source": {func(s *scene) { plans.Pin(s.destination); alone(s) }, plans.After, ""},
	})
}

// alone lets the wave be all that the source has.
func alone(s *scene) {
	one := int32(1)
	s.plan.Start, s.plan.Count = 3, 2
	s.source.Spec.Replicas, s.source.Spec.Ordinals = &one, &appsv1.StatefulSetOrdinals{Start: 3}
}

// An update that began before the set was pinned ends only when it is pinned no more. What the controller has to see is waited
// for as it is.
func TestAnUpdateThatIsPinnedIsLetGo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		id     reasons.ID
		eases  bool
	}{
		"it is pinned":            {func(s *scene) { plans.Pin(s.source); updating(s.source) }, reasons.SetUnsettled, true},
		"the other one is pinned": {func(s *scene) { plans.Pin(s.source); updating(s.destination) }, reasons.SetUnsettled, false},
		"the pin is not seen yet": {func(s *scene) { plans.Pin(s.source); s.source.Status.ObservedGeneration = 2 }, reasons.SetNotObserved, false},
		"something else is not":   {func(s *scene) { s.source.Status.ObservedGeneration = 2 }, reasons.SetNotObserved, false},
		"the templates differ": {func(s *scene) {
			plans.Pin(s.source)
			s.destination.Spec.Template.Labels = map[string]string{"a": "b"}
		}, reasons.TemplateDiffers, true},
	} {
		s := middle(plans.Tighten)
		c.change(s)
		got, err := tightens(s.steps())(t.Context(), s.moment)
		if err != nil || got.Standing != plans.During || got.ID != c.id || got.Eases != c.eases {
			t.Errorf("%s: %+v (%v), expected %s, eased %t", name, got, err, c.id, c.eases)
		}
	}
}

// Shrink asks once more. Once it is recorded that the wave leaves there is no way back to Tighten: then it pins the sets
// itself, and an update that is pinned rolls nothing.
func TestAWaveLeavesOnlyBesideSetsThatArePinned(t *testing.T) {
	both := func(s *scene) { plans.Pin(s.source); plans.Pin(s.destination) }
	recorded := func(s *scene) {
		s.moment.Began = true
		s.moment.Flight = &plans.Flight{Ordinals: s.moment.Ordinals, From: plans.Source}
	}
	looks(t, func() *scene { return middle(plans.Shrink) }, func(w Steps) plans.Look { return w.Shrink }, map[string]seen{
		"both are pinned":                    {both, plans.Before, "source: StatefulSet web: [2..3] -> [2]"},
		"the source is not":                  {func(s *scene) { plans.Pin(s.destination) }, plans.During, "a rolling update could begin beside web-3"},
		"the destination is not":             {func(s *scene) { plans.Pin(s.source) }, plans.During, "a rolling update could begin beside web-3"},
		"another writer has set one back":    {func(s *scene) { both(s); partition(s.destination, 1) }, plans.Conflict, "its updateStrategy was changed meanwhile by"},
		"one is not, and it leaves":          {func(s *scene) { plans.Pin(s.source); recorded(s) }, plans.Before, "destination: StatefulSet web: pin its rolling updates"},
		"an update is pinned":                {func(s *scene) { both(s); updating(s.source) }, plans.During, "rolling update"},
		"an update is pinned, and it leaves": {func(s *scene) { both(s); updating(s.source); recorded(s) }, plans.Before, "source: StatefulSet web: [2..3] -> [2]"},
		"an update began, and it leaves":     {func(s *scene) { updating(s.source); recorded(s) }, plans.During, "rolling update"},
		"the pin is not seen, and it leaves": {func(s *scene) {
			both(s)
			recorded(s)
			s.destination.Status.ObservedGeneration = 2
		}, plans.During, "to see generation 3"},
	})
	s := middle(plans.Shrink)
	recorded(s)
	w := s.steps()
	got, err := w.Shrink(t.Context(), s.moment)
	if err != nil || got.Standing != plans.Before {
		t.Fatal(got, err)
	}
	if err := got.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if set, err := w.Set(t.Context(), plans.Source); err != nil || !plans.Pinned(set) || written(s.moment, set) {
		t.Errorf("a set that is pinned is taken for one whose wave has left: %v, %v", set.Annotations, err)
	}
}

// What was pinned gets back what it had; what another writer has set since stays (S15, S12).
func TestSetsAreUnpinnedAgain(t *testing.T) {
	both := func(s *scene) { plans.Pin(s.source); plans.Pin(s.destination) }
	looks(t, func() *scene { return middle(plans.Relax) }, func(w Steps) plans.Look { return Unpin(w.Plan, w.On) }, map[string]seen{
		"neither is pinned":            {func(*scene) {}, plans.After, ""},
		"both are pinned":              {both, plans.Before, "source: StatefulSet web: rolling updates go on, partition as before; destination: StatefulSet web: rolling"},
		"another writer has set one":   {func(s *scene) { plans.Pin(s.source); partition(s.source, 1) }, plans.Before, "rolling updates go on, with the updateStrategy that an unknown client has set"},
		"the annotation was taken off": {func(s *scene) { both(s); delete(s.source.Annotations, plans.PinnedAnnotation) }, plans.Before, "source: StatefulSet web: rolling updates go on, partition as before"},
		"the annotation is another's":  {func(s *scene) { both(s); s.source.Annotations[plans.PinnedAnnotation] = "?" }, plans.Conflict, `is "?", which this program does not write`},
		"a later process has it":       {func(s *scene) { both(s); s.source.Annotations[plans.StampAnnotation] = "web-abc/2/3" }, plans.Conflict, "another process has taken the plan over"},
		"it lost the mark of the plan": {func(s *scene) { plans.Pin(s.source); delete(s.source.Annotations, plans.StampAnnotation) }, plans.After, ""},
		"the source is gone":           {func(s *scene) { s.source = nil; plans.Pin(s.destination) }, plans.Before, "destination: StatefulSet web: rolling"},
	})
}

// A set that is made again while the other one is pinned is pinned too.
func TestASetThatComesBackInTheMiddleIsPinned(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		s := middle(plans.Grow)
		left(s)
		s.plan.Claims, s.claim = nil, nil
		s.moment.Ordinals.Start, s.moment.Flight.Ordinals.Start = 3, 3
		*s.source.Spec.Replicas = 1
		s.moment.Readopt = true
		s.destination.Annotations = nil
		if pinned {
			plans.Pin(s.source)
		}
		w := s.steps()
		got, err := w.Grow(t.Context(), s.moment)
		if err != nil || got.Standing != plans.Before || !strings.Contains(got.Reason, "taken back into the plan") {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := got.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if set, err := w.Set(t.Context(), plans.Destination); err != nil || plans.Pinned(set) != pinned {
			t.Errorf("pinned %t: %v, %v", pinned, set.Annotations, err)
		}
	}
}
