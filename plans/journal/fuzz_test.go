package journal

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// A plan can be resumed from any journal that decodes: without a panic, over no more than its plan
// has, and the resulting journal decodes again.
func FuzzJournal(f *testing.F) {
	p := journaled(f)
	for _, j := range walked(p) {
		raw, err := json.Marshal(j)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := Decode(raw, p); err != nil {
			f.Fatal(err) // the seed would test nothing
		}
		for _, direction := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
			f.Add(raw, string(direction), int32(3), int32(1))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, direction string, until, pause int32) {
		j, err := Decode(raw, p)
		if err != nil {
			return
		}
		goneOn(t, p, j, plans.Direction(direction), until, pause)
	})
}

// A fuzz test seldom changes two values of a document that belong together. Here each value of a journal is replaced by
// each lie, and many two by two.
func TestAPlanIsResumedFromNoLie(t *testing.T) {
	p, read := journaled(t), 0
	for _, j := range walked(p) {
		raw, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		read += planstest.Lie(t, raw, 1000, func(_ string, raw []byte) bool {
			for n, direction := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
				j, err := Decode(raw, p)
				if err != nil {
					return false
				}
				goneOn(t, p, j, direction, int32(3*n), int32(n))
			}
			return true
		})
	}
	if read < 334 { // each of them was gone on with in three directions
		t.Errorf("only %d were read", read)
	}
}

// journaled returns a plan that uses what a journal has a field for.
func journaled(tb testing.TB) *plans.Plan {
	tb.Helper()
	p := planstest.Three()
	p.APIVersion, p.Kind, p.MaxUnavailable, p.Window = plans.APIVersion, plans.PlanKind, 2, 2
	p.Shared = []plans.SharedVolume{{Claim: "logo", Volume: "pv-logo", Handle: "disk"}}
	p.Gates = planstest.Asked(func(g *plans.Gate) { g.When = plans.BeforeShrink })
	p.Budget = plans.Budget{Source: "web", Destination: "web"}
	p.Seen.DestinationUID = "u"
	if err := p.Seal(); err != nil {
		tb.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		tb.Fatal(err)
	}
	return p
}

// goneOn applies to a journal every operation that changes it.
func goneOn(t *testing.T, p *plans.Plan, j *Journal, c plans.Direction, until, pause int32) {
	t.Helper()
	again := func(what string) {
		t.Helper()
		raw, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(raw, p); err != nil {
			t.Errorf("%s makes of it what cannot be read: %v", what, err)
		}
	}
	again("nothing")
	step, began, more := j.Next(p)
	seen(p, j, step, began)
	if more && j.Outcome == "" {
		j.Begin(p, step, plans.Undo{})
		again("a step")
	}
	for what, err := range map[string]error{
		"another route":            j.Limit(p, plans.Limits{Until: &until, PauseAfter: pause}),
		"gates that are not asked": j.Skip(p),
		"a word":                   j.Assure(p, plans.Assurance{MaxUnavailable: until, Readopt: true}),
	} {
		if err == nil {
			again(what)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j.Tightened(now)
	j.Enter(plans.Terminating, now)
	j.Loosened(now)
	j.Arrive(now, Wave{Seq: step.Seq, Ordinals: step.Ordinals, To: step.To()})
	j.Timeline.Record(now, Event{Kind: Requested, By: "anna", What: "a text"})
	again("the end of a wave")
	if !j.Ended() && (c == plans.Abort && j.Leg.Direction == plans.Move || c == plans.Finalize && j.Outcome == plans.Moved) {
		j.StartLeg(p, c)
		again("another way")
	}
}

// seen applies to a journal every operation that reads it, for a look or a report.
func seen(p *plans.Plan, j *Journal, step plans.Step, began bool) {
	j.At(p, step, began, plans.Stamp{Plan: p.ID, Epoch: j.Epoch, Seq: step.Seq})
	for seq := j.Done + 1; seq <= j.Begun; seq++ { // as a takeover does
		s, _ := p.Step(j.Leg, seq)
		for o := range s.Ordinals.All() {
			_ = p.Pod(plans.Source, o)
		}
	}
	_, _ = step.ID(), p.Pods(step.Ordinals)
	_ = j.Idle(p)
	_, _ = j.Left(), j.AssuredFacts()
	_, _ = j.Skipped(p), j.PauseDue(step)
	_, _ = j.AtRest(p), j.Down(p)
	_ = j.Leg.Outcome(p)
	if j.Downtime != nil {
		_ = j.Downtime.String()
	}
	if j.Flight != nil {
		for o := range j.Flight.Ordinals.All() {
			_, _ = j.Flight.Pod(o), j.Flight.Of(o)
		}
	}
	preview.Render(p, j.Leg)
}

// walked returns journals of a plan at several points of its directions.
func walked(p *plans.Plan) []*Journal {
	under := New(p)
	under.Epoch, under.Done, under.Begun, under.Detached, under.Touched = 3, 8, 9, true, []int32{3, 4}
	under.Flight = &plans.Flight{
		Ordinals: plans.Slice{Start: 3, Replicas: 2}, From: plans.Source, NodesGone: []string{"node-1"},
		Pods:    []plans.Pod{{Ordinal: 4, UID: "u", Node: "node-1", Stopped: "so", Proof: "so"}},
		Volumes: []plans.Volume{{Ordinal: 4, Template: "data", Claim: "c", Name: "pv", Handle: "disk"}},
	}
	under.Saved = plans.Saved{
		Retention: map[plans.Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{plans.Source: {WhenDeleted: "Delete", WhenScaled: "Retain"}},
		Budgets:   map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: {}}, Slice: &plans.Slice{},
	}
	under.Passed = &plans.Passed{Seq: 7, Gates: []string{"g/4"}, At: []metav1.Time{{Time: time.Unix(1, 0).UTC()}}}
	under.Stopwatch = &Stopwatch{Span: plans.Detaching, Since: metav1.NewMicroTime(time.Unix(1, 0)), Took: map[plans.Span]metav1.Duration{plans.Terminating: {Duration: time.Second}}}
	under.Prepared = &plans.Slice{Start: 2, Replicas: 1}
	turned := *under
	turned.StartLeg(p, plans.Abort)
	turned.Assurances.MaxUnavailable = 3
	held := New(p)
	held.Blocked, held.Paused, held.SkipGates = "a reason", true, plans.AllSteps
	held.Observed = plans.Observed{Direction: plans.Abort, Paused: true, Request: "7", Refused: "a reason"}
	moved := New(p)
	moved.Done = p.Length(moved.Leg)
	moved.Begun, moved.Outcome = moved.Done, plans.Moved
	cleaned := *moved
	cleaned.StartLeg(p, plans.Finalize)
	return []*Journal{New(p), under, &turned, held, moved, &cleaned}
}
