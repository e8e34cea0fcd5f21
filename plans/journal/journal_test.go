package journal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestOldValuesAreSavedOnce(t *testing.T) {
	p, j := planstest.Three(), New(planstest.Three())
	first, _, _ := j.Next(p)
	value := func(start int32, percent string, policy appsv1.PersistentVolumeClaimRetentionPolicyType) plans.Saved {
		number := intstr.FromString(percent)
		return plans.Saved{
			Slice:     &plans.Slice{Start: start},
			Budgets:   map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: {MaxUnavailable: &number}},
			Retention: map[plans.Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{plans.Source: {WhenScaled: policy}},
		}
	}
	was := value(7, "30%", appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	j.Begin(p, first, plans.Undo{Saved: was})
	j.Begin(p, first, plans.Undo{Saved: value(9, "0%", appsv1.RetainPersistentVolumeClaimRetentionPolicyType)})
	if diff := cmp.Diff(was, j.Saved); diff != "" {
		t.Errorf("expected the first values (-want +got)\n%s", diff)
	}
}

func TestBatchAnnouncesOnlyStepsOfOneWord(t *testing.T) {
	p, j := planstest.Three(), New(planstest.Three())
	freeze, _, _ := j.Next(p)
	j.Begin(p, freeze, plans.Undo{})
	if j.Begun != 1 {
		t.Errorf("Freeze announces up to %d, expected itself, 1", j.Begun)
	}
	j.Done = 1
	hold, _, _ := j.Next(p)
	j.Begin(p, hold, plans.Undo{})
	if last, _ := p.Step(j.Leg, j.Begun); last.ID() != "4/Protect" {
		t.Errorf("Protect announces up to %s, expected 4/Protect", last.ID())
	}
}

// A step is announced with the one before it only if every old value that it destroys is saved by then: Release
// must not announce Reserve, which needs what Release has read.
func TestAWaveAnnouncesTheNextStepAfterReserveAndGrow(t *testing.T) {
	p, j := planstest.Three(), New(planstest.Three())
	j.Done, j.Begun = 4, 4
	for s, _, more := j.Next(p); more; s, _, more = j.Next(p) {
		j.Begun = s.Seq - 1
		j.Begin(p, s, plans.Undo{})
		want := s.Seq
		if s.Op == plans.Reserve || s.Op == plans.Grow {
			want++
		}
		for range 2 { // a set that was made again is noted once more
			if j.Begun != want {
				t.Errorf("%s announces up to step %d, expected %d", s.ID(), j.Begun, want)
			}
			j.Begin(p, s, plans.Undo{})
		}
		j.Done = s.Seq
	}
}

// A process that looks again at a step that is done must not forget that a later one may have written.
func TestBegunNeverFalls(t *testing.T) {
	p, j := planstest.Three(), vacating(planstest.Three())
	begun := j.Begun
	for seq := begun; seq > begun-3; seq-- {
		s, _ := p.Step(j.Leg, seq)
		if j.Begin(p, s, plans.Undo{}); j.Begun != begun {
			t.Errorf("with %s begun falls to %d, expected %d", s.ID(), j.Begun, begun)
		}
	}
}

// What a write destroys is in the journal before it is sent (S10). Facts about another wave, or of another side,
// are not those of this write.
func TestOldValuesThatTheJournalLacksAreNotRecorded(t *testing.T) {
	flight := func(uid types.UID) *plans.Flight {
		return &plans.Flight{Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source, Pods: []plans.Pod{{Ordinal: 4, UID: uid}}}
	}
	budget := func(s plans.Side) plans.Saved {
		return plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{s: {}}}
	}
	policy := func(s plans.Side) plans.Saved {
		return plans.Saved{Retention: map[plans.Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{s: {}}}
	}
	passed := func(gate string) *plans.Passed { return &plans.Passed{Seq: 7, Gates: []string{gate}} }
	for name, c := range map[string]struct {
		have, lacks plans.Undo
	}{
		"a flight":           {plans.Undo{Flight: flight("a")}, plans.Undo{Flight: flight("b")}},
		"a gate":             {plans.Undo{Passed: passed("a/4")}, plans.Undo{Passed: passed("b/4")}},
		"a budget":           {plans.Undo{Saved: budget(plans.Source)}, plans.Undo{Saved: budget(plans.Destination)}},
		"a retention policy": {plans.Undo{Saved: policy(plans.Source)}, plans.Undo{Saved: policy(plans.Destination)}},
		"a range":            {plans.Undo{}, plans.Undo{Saved: plans.Saved{Slice: &plans.Slice{}}}},
		"a deletion":         {plans.Undo{}, plans.Undo{Saved: plans.Saved{Retired: "a"}}},
		"a recreated source": {plans.Undo{Saved: plans.Saved{SourceUID: "a"}}, plans.Undo{Saved: plans.Saved{SourceUID: "b"}}},
	} {
		p, j := planstest.Three(), New(planstest.Three())
		first, _, _ := j.Next(p)
		j.Begin(p, first, c.have)
		if !j.Recorded(c.have) || j.Recorded(c.lacks) {
			t.Errorf("%s: what it has is recorded %t, what it lacks %t", name, j.Recorded(c.have), j.Recorded(c.lacks))
		}
	}
}

// A paused plan is at rest when no wave is in flight and the budgets are open.
func TestAPausedPlanIsAtRestBetweenWaves(t *testing.T) {
	p := planstest.Three()
	tighten := at(t, p, New(p), "3/Tighten")
	for name, c := range map[string]struct {
		change func(*Journal)
		want   bool
	}{
		"before a wave":                      {func(j *Journal) { j.Begun = j.Done }, true},
		"without a pause":                    {func(j *Journal) { j.Begun, j.Paused = j.Done, false }, false},
		"when the budgets may be tight":      {func(*Journal) {}, false},
		"when they were opened for the rest": {func(j *Journal) { j.Resting = true }, true},
		"in a wave":                          {func(j *Journal) { j.Done, j.Begun, j.Resting = j.Done+1, j.Done+1, true }, false},
		"before a wave that was reversed": {func(j *Journal) {
			at(t, p, j, "3/Vacate")
			j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 3, Replicas: 1}, From: plans.Source}
			j.StartLeg(p, plans.Abort)
			j.Paused = true
		}, false},
	} {
		j := *tighten
		j.Paused = true
		if c.change(&j); j.AtRest(p) != c.want {
			step, began, _ := j.Next(p)
			t.Errorf("%s: at %s (began %t) it is at rest: %t, expected %t", name, step.ID(), began, j.AtRest(p), c.want)
		}
	}
}

// A ConfigMap holds about 1 MiB. Neither plan nor journal may grow with the
// number of ordinals.
func TestPlansOfManyOrdinalsAreSmall(t *testing.T) {
	in := planstest.Inputs()
	in.Set = planstest.Set(0, 10_000)
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := plans.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	j := New(p)
	percent := intstr.FromString("30%")
	for s, _, more := j.Next(p); more; s, _, more = j.Next(p) {
		j.Begin(p, s, plans.Undo{
			Flight: &plans.Flight{Ordinals: s.Ordinals, From: plans.Source, Pods: make([]plans.Pod, s.Ordinals.Replicas), Volumes: make([]plans.Volume, 8*s.Ordinals.Replicas)},
			Saved:  plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: {MaxUnavailable: &percent}}},
		})
		j.Done = s.Seq
	}
	journal, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw)+len(journal) > 8<<10 {
		t.Errorf("plan %d bytes, journal %d bytes, expected under 8 KiB together", len(raw), len(journal))
	}
}

func TestAJournalOfTheNextReleaseKeepsItsUnknownFields(t *testing.T) {
	p := plan(t)
	first := New(p)
	first.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source, Pods: []plans.Pod{{Ordinal: 4, UID: "u"}}}
	first.Blocked = "a reason"
	raw := planstest.Newer(t, first)
	for range 2 { // read and write twice
		j, err := Decode(raw, p)
		if err != nil {
			t.Fatal(err)
		}
		j.Epoch, j.Blocked = j.Epoch+1, ""
		if raw, err = json.Marshal(j); err != nil {
			t.Fatal(err)
		}
	}
	for want, is := range map[string]bool{`"mood":{"is":["good"]}`: true, `"slope":7`: true, `"zone":"a"`: true, `"epoch":2`: true, `"blocked"`: false} {
		if strings.Contains(string(raw), want) != is {
			t.Errorf("%s, expected %s in it: %t", raw, want, is)
		}
	}
	if j, err := Decode(raw, p); err != nil || j.Epoch != 2 || j.Blocked != "" || j.Flight.Pods[0].UID != "u" {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestWhatAReaderHasToKnowOfIsSaidInOneSentence(t *testing.T) {
	p := plan(t)
	raw, err := plans.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	_, ofPlan := plans.DecodePlan([]byte(string(raw) + "requires: [pairs]\n"))
	doc, err := json.Marshal(New(p))
	if err != nil {
		t.Fatal(err)
	}
	_, ofJournal := Decode([]byte(strings.Replace(string(doc), "{", `{"requires":["pairs"],`, 1)), p)
	for kind, err := range map[string]error{plans.PlanKind: ofPlan, plans.JournalKind: ofJournal} {
		want := "this " + kind + ` was written by a newer stsmigrate and requires support for ["pairs"], which this release does not have: use the newer release`
		if err == nil || err.Error() != want {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

func plan(t *testing.T) *plans.Plan {
	t.Helper()
	p, err := build.Plan(planstest.Inputs())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
