package journal

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A journal decides what is written and how far a process iterates, so it must fit its plan.
func TestAJournalThatDoesNotFitItsPlanIsRefused(t *testing.T) {
	in := planstest.Inputs()
	in.Set = planstest.Templates("data")
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	wave := plans.Slice{Start: 4, Replicas: 1}
	volume := plans.Volume{Ordinal: 4, Template: "data", Name: "pv-4", Handle: "disk"}
	one := intstr.FromInt32(1)
	for name, c := range map[string]struct {
		change func(*Journal)
		want   string // empty for a journal that fits
	}{
		"a new one":      {func(*Journal) {}, ""},
		"one at its end": {func(j *Journal) { j.Done, j.Begun, j.Outcome = 28, 28, plans.Moved }, ""},
		"one that was aborted": {func(j *Journal) {
			j.Begun = 9
			j.StartLeg(p, plans.Abort)
			j.Done, j.Begun, j.Outcome = 22, 22, plans.Aborted
		}, ""},
		"one that is cleaned up": {func(j *Journal) {
			j.Done, j.Begun = 28, 28
			j.StartLeg(p, plans.Finalize)
			j.Done, j.Begun, j.Outcome = 33, 33, plans.Finalized
		}, ""},
		"one with a wave in flight": {func(j *Journal) {
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Volumes: []plans.Volume{volume}}
		}, ""},
		"no direction":                    {func(j *Journal) { j.Leg.Direction = "" }, `leg.direction is ""`},
		"another direction":               {func(j *Journal) { j.Leg.Direction = "Away" }, `leg.direction is "Away"`},
		"a leg that begins nowhere":       {func(j *Journal) { j.Leg.First = 0 }, "leg.first is 0"},
		"a leg below the plan":            {func(j *Journal) { j.Leg.Lowest = 1 }, "(Move) is of the ordinals from 1 to 4"},
		"a leg above it":                  {func(j *Journal) { j.Leg.End = 6 }, "(Move) is of the ordinals from 2 to 5"},
		"a leg the wrong way round":       {func(j *Journal) { j.Leg.Lowest, j.Leg.End = 5, 3 }, "(Move) is of the ordinals from 5 to 2"},
		"a way back of a part":            {func(j *Journal) { j.Leg = plans.Leg{Direction: plans.Abort, First: 1, Lowest: 2, End: 4} }, "(Abort) is of the ordinals from 2 to 3"},
		"a wave larger than the window":   {func(j *Journal) { j.Leg.Head = 3 }, "leg.head is 3"},
		"done before the first step":      {func(j *Journal) { j.Done = -1 }, "done is -1"},
		"done behind the last one":        {func(j *Journal) { j.Done, j.Begun = 29, 28 }, "done is 29 and begun is 28, expected 0 to 28"},
		"begun far ahead":                 {func(j *Journal) { j.Begun = 300_000_000 }, "begun is 300000000"},
		"begun with a wave ahead":         {func(j *Journal) { j.Done, j.Begun = 0, 25 }, "begun is 25 and done is 0"},
		"begun with two waves":            {func(j *Journal) { j.Done, j.Begun = 10, 19 }, "begun is 19 and done is 10"},
		"a negative epoch":                {func(j *Journal) { j.Epoch = -1 }, "epoch is -1"},
		"a pause elsewhere":               {func(j *Journal) { j.PauseAt = 9 }, "pauseAt is 9"},
		"a wave that is prepared":         {func(j *Journal) { j.Prepared = &wave }, ""},
		"no ordinal prepared":             {func(j *Journal) { j.Prepared = &plans.Slice{Start: 2} }, "prepared is 0 ordinals from 2"},
		"ordinals of others prepared":     {func(j *Journal) { j.Prepared = &plans.Slice{Start: 5, Replicas: 1} }, "prepared is 1 ordinals from 5"},
		"more than a wave prepared":       {func(j *Journal) { j.Prepared = &plans.Slice{Start: 2, Replicas: 2} }, "prepared is 2 ordinals from 2"},
		"gates skipped before":            {func(j *Journal) { j.SkipGates = -1 }, "skipGates is -1"},
		"ordinals of others":              {func(j *Journal) { j.Touched = []int32{2, 9} }, "touched has 2 ordinals"},
		"ordinals again and again":        {func(j *Journal) { j.Touched = []int32{2, 2, 2, 2} }, "touched has 4 ordinals"},
		"gates that nobody asks":          {func(j *Journal) { j.Passed = &plans.Passed{Seq: 1, Gates: []string{"g/2"}} }, "passed has 1 gates at step 1"},
		"times of no gate":                {func(j *Journal) { j.Passed = &plans.Passed{Seq: 1, At: []metav1.Time{{}}} }, "passed has 1 times for 0 gates"},
		"another end":                     {func(j *Journal) { j.Outcome = "Lost" }, `outcome is "Lost"`},
		"the end of another way":          {func(j *Journal) { j.Outcome = plans.Finalized }, `outcome is "Finalized" on a Move`},
		"more may be down than there are": {func(j *Journal) { j.Assurances.MaxUnavailable = 4 }, "assurances.maxUnavailable is 4"},
		"a flight of more than a wave": {func(j *Journal) {
			j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 2}, From: plans.Source}
		}, "flight is of 2 ordinals from 2"},
		"a flight outside the plan": {func(j *Journal) {
			j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 5, Replicas: 1}, From: plans.Source}
		}, "flight is of 1 ordinals from 5"},
		"a flight from nowhere": {func(j *Journal) { j.Flight = &plans.Flight{Ordinals: wave} }, `on the side ""`},
		"a pod of another ordinal": {func(j *Journal) {
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Pods: []plans.Pod{{Ordinal: 3}}}
		}, "flight.pods has ordinal 3"},
		"a node that is a path": {func(j *Journal) {
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Pods: []plans.Pod{{Ordinal: 4, Node: "a/b"}}}
		}, `on node "a/b"`},
		"volumes without end": {func(j *Journal) {
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Volumes: []plans.Volume{volume, volume}}
		}, "and 2 volumes"},
		"a volume of another template": {func(j *Journal) {
			v := volume
			v.Template = "log"
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Volumes: []plans.Volume{v}}
		}, `template "log"`},
		"a volume of another ordinal": {func(j *Journal) {
			v := volume
			v.Ordinal = 3
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Volumes: []plans.Volume{v}}
		}, "of ordinal 3"},
		"a volume without a disk": {func(j *Journal) {
			v := volume
			v.Handle = ""
			j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, Volumes: []plans.Volume{v}}
		}, "with their handles"},
		"another policy": {func(j *Journal) {
			j.Saved.Retention = map[plans.Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{plans.Source: {WhenScaled: "Recycle"}}
		}, `saved.retention is "Recycle"`},
		"a budget of two kinds": {func(j *Journal) {
			j.Saved.Budgets = map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: {MinAvailable: &one, MaxUnavailable: &one}}
		}, "saved.budgets"},
		"a budget of no side":             {func(j *Journal) { j.Saved.Budgets = map[plans.Side]policyv1.PodDisruptionBudgetSpec{"home": {}} }, `saved.budgets: the entry "home" is invalid`},
		"the range of what was not there": {func(j *Journal) { j.Saved.Slice = &plans.Slice{} }, "a destination set that was there before"},
		"news of another way":             {func(j *Journal) { j.Observed.Direction = "Away" }, `observed.direction is "Away"`},
	} {
		j := New(p)
		c.change(j)
		raw, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decode(raw, p)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "does not fit plan web")) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

// A process that resumes looks at every step that may have begun, so a journal announces no more than it may at once.
func TestAJournalAnnouncesABoundedNumberOfSteps(t *testing.T) {
	in := planstest.Inputs()
	in.Set = planstest.Templates("data")
	replicas := int32(2 * plans.MaxAnnounced)
	in.Set.Spec.Replicas = &replicas
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	j, first := New(p), 1
	for s, more := p.Step(j.Leg, first); s.Op != plans.Protect; s, more = p.Step(j.Leg, first) {
		if !more {
			t.Fatal("the plan protects nothing")
		}
		first++
	}
	for ahead, want := range map[int]bool{1: true, plans.MaxAnnounced: true, plans.MaxAnnounced + 1: false} {
		j.Done, j.Begun = first-1, first-1+ahead
		raw, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(raw, p); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "expected no more than 64 between them") {
			t.Errorf("%d steps announced: %v", ahead, err)
		}
	}
}

// The length of a leg is the number of its steps, in every direction.
func TestALegIsAsLongAsItsSteps(t *testing.T) {
	for _, shared := range [][]plans.SharedVolume{nil, {{}}} {
		for _, gates := range [][]plans.Gate{nil, {{}}} {
			for _, l := range []plans.Leg{
				{Direction: plans.Move, First: 1, Lowest: 2, End: 5},
				{Direction: plans.Move, First: 1, Lowest: 3, End: 5, Head: 1},
				{Direction: plans.Move, First: 9, Lowest: 2, End: 3},
				{Direction: plans.Abort, First: 7, Lowest: 3, End: 5},
				{Direction: plans.Abort, First: 7, Lowest: 5, End: 5},
				{Direction: plans.Finalize, First: 20, Lowest: 5, End: 5},
			} {
				p := planstest.Three()
				p.Shared, p.Gates, p.Window = shared, gates, 2
				last := l.First - 1
				for _, more := p.Step(l, last+1); more; _, more = p.Step(l, last+1) {
					last++
				}
				if got := p.Length(l); got != last-l.First+1 {
					t.Errorf("%+v: %d steps, expected %d", l, got, last-l.First+1)
				}
			}
		}
	}
}
