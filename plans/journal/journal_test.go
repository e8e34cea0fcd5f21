package journal

import (
	"encoding/json"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestOldValuesAreSavedOnce(t *testing.T) {
	p, j := planstest.Three(), New(planstest.Three())
	first, _, _ := j.Next(p)
	j.Begin(p, first, plans.Undo{Saved: plans.Saved{Slice: &plans.Slice{Start: 7}}})
	j.Begin(p, first, plans.Undo{Saved: plans.Saved{Slice: &plans.Slice{Start: 9}}})
	if j.Saved.Slice.Start != 7 {
		t.Errorf("saved start is %d, expected the first value, 7", j.Saved.Slice.Start)
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
