package plans

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A plan can be resumed from any journal that decodes: without a panic, over no more than its plan
// has, and the resulting journal decodes again.
func FuzzJournal(f *testing.F) {
	p := three()
	p.APIVersion, p.Kind, p.MaxUnavailable, p.Window = APIVersion, PlanKind, 2, 2
	p.Shared = []SharedVolume{{Claim: "logo", Volume: "pv-logo", Handle: "disk"}}
	p.Gates = asked(func(g *Gate) { g.When = BeforeShrink })
	p.Budget = Budget{Source: "web", Destination: "web"}
	p.Seen.DestinationUID = "u"
	if err := p.seal(); err != nil {
		f.Fatal(err)
	}
	if err := p.validate(); err != nil {
		f.Fatal(err)
	}
	for _, j := range walked(p) {
		raw, err := json.Marshal(j)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := DecodeJournal(raw, p); err != nil {
			f.Fatal(err) // the seed would test nothing
		}
		for _, direction := range []Direction{Move, Abort, Finalize} {
			f.Add(raw, string(direction), int32(3), int32(1))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, direction string, until, pause int32) {
		j, err := DecodeJournal(raw, p)
		if err != nil {
			return
		}
		goneOn(t, p, j, Direction(direction), until, pause)
	})
}

// goneOn applies to a journal every operation that changes it.
func goneOn(t *testing.T, p *Plan, j *Journal, c Direction, until, pause int32) {
	t.Helper()
	again := func(what string) {
		t.Helper()
		raw, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeJournal(raw, p); err != nil {
			t.Errorf("%s makes of it what cannot be read: %v", what, err)
		}
	}
	again("nothing")
	step, began, more := j.Next(p)
	seen(p, j, step, began)
	if more && j.Outcome == "" {
		j.Begin(p, step, Undo{})
		again("a step")
	}
	for what, err := range map[string]error{
		"another route":            j.Limit(p, Limits{Until: &until, PauseAfter: pause}),
		"gates that are not asked": j.Skip(p),
		"a word":                   j.Assure(p, Assurance{MaxUnavailable: until, Readopt: true}),
	} {
		if err == nil {
			again(what)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j.Tightened(now)
	j.Enter(Terminating, now)
	j.Loosened(now)
	j.Arrive(now)
	again("the end of a wave")
	if !j.Ended() && (c == Abort && j.Leg.Direction == Move || c == Finalize && j.Outcome == Moved) {
		j.StartLeg(p, c)
		again("another way")
	}
}

// seen applies to a journal every operation that reads it, for a look or a report.
func seen(p *Plan, j *Journal, step Step, began bool) {
	j.At(p, step, began, Stamp{Plan: p.ID, Epoch: j.Epoch, Seq: step.Seq})
	for seq := j.Done + 1; seq <= j.Begun; seq++ { // as a takeover does
		s, _ := p.Step(j.Leg, seq)
		for o := range s.Ordinals.All() {
			_ = p.Pod(o)
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
	Render(p, j.Leg)
}

// walked returns journals of a plan at several points of its directions.
func walked(p *Plan) []*Journal {
	under := NewJournal(p)
	under.Epoch, under.Done, under.Begun, under.Detached, under.Touched = 3, 8, 9, true, []int32{3, 4}
	under.Flight = &Flight{
		Ordinals: Slice{3, 2}, From: Source, NodesGone: []string{"node-1"},
		Pods:    []Pod{{Ordinal: 4, UID: "u", Node: "node-1", Stopped: "so", Proof: "so"}},
		Volumes: []Volume{{Ordinal: 4, Template: "data", Claim: "c", Name: "pv", Handle: "disk"}},
	}
	under.Saved = Saved{
		Retention: map[Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{Source: {WhenDeleted: "Delete", WhenScaled: "Retain"}},
		Budgets:   map[Side]policyv1.PodDisruptionBudgetSpec{Source: {}}, Slice: &Slice{},
	}
	under.Passed = &Passed{Seq: 7, Gates: []string{"g/4"}}
	under.Stopwatch = &Stopwatch{Span: Detaching, Since: metav1.NewMicroTime(time.Unix(1, 0)), Took: map[Span]metav1.Duration{Terminating: {Duration: time.Second}}}
	turned := *under
	turned.StartLeg(p, Abort)
	turned.Assurances.MaxUnavailable = 3
	held := NewJournal(p)
	held.Blocked, held.Paused, held.SkipGates = "a reason", true, allSteps
	held.Observed = Observed{Direction: Abort, Paused: true, Request: "7", Refused: "a reason"}
	moved := NewJournal(p)
	moved.Done = p.length(moved.Leg)
	moved.Begun, moved.Outcome = moved.Done, Moved
	cleaned := *moved
	cleaned.StartLeg(p, Finalize)
	return []*Journal{NewJournal(p), under, &turned, held, moved, &cleaned}
}
