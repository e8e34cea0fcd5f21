package journal

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// at returns the journal of a plan whose last begun step is the one with the given ID.
func at(t *testing.T, p *plans.Plan, j *Journal, id string) *Journal {
	t.Helper()
	for seq := j.Leg.First; ; seq++ {
		s, more := p.Step(j.Leg, seq)
		if !more {
			t.Fatalf("no step %s", id)
		}
		j.Done, j.Begun = seq-1, seq
		if s.ID() == id {
			return j
		}
	}
}

func TestDepartureBeginsWithTheWaveUnderWay(t *testing.T) {
	for _, c := range []struct {
		window int32
		id     string
		want   string
	}{
		{1, "Freeze", ""},
		{1, "3/Protect", ""},
		{1, "4/Tighten", "4"},
		{1, "4/Grow", "4"},
		{1, "3/Release", "3 4"},
		{1, "2/Relax", "2 3 4"},
		{2, "3..4/Release", "3..4"},
		{2, "2/Reserve", "2 3..4"},
	} {
		p := planstest.Three()
		p.Window = c.window
		j := at(t, p, New(p), c.id)
		begun := j.Begun
		j.StartLeg(p, plans.Abort)
		if got := waves(p, j.Leg); got != c.want || j.Leg.First != begun+1 {
			t.Errorf("abort at %s rolls back %q from step %d, expected %q from %d", c.id, got, j.Leg.First, c.want, begun+1)
		}
	}
}

func TestARouteEndsOrPausesWhereItWasAsked(t *testing.T) {
	for _, c := range []struct {
		window int32
		begun  string // "" for nothing
		until  int32  // -1 for the end
		pause  int32
		want   string // the waves from there
		at     int32  // where it pauses
	}{
		{1, "", -1, 0, "6 5 4 3 2 1 0", 0},
		{1, "", -1, 1, "6 5 4 3 2 1 0", 6},
		{3, "", -1, 1, "6 3..5 0..2", 6},
		{3, "", -1, 4, "6 3..5 0..2", 3},
		{3, "", 2, 0, "4..6 2..3", 0},
		{3, "", 2, 5, "5..6 2..4", 0}, // the move ends there anyway
		{3, "2/Protect", 2, 0, "4..6 2..3", 0},
		{3, "4..6/Tighten", 2, 5, "5..6 2..4", 0}, // the wave waits for other pods and has not left
		{3, "4..6/Tighten", -1, 4, "6 3..5 0..2", 3},
		{3, "4..6/Relax", -1, 0, "1..3 0", 0},
		{3, "1..3/Tighten", -1, 1, "3 0..2", 3},
		{3, "4..6/Relax", 2, 1, "3 2", 3},
	} {
		p := &plans.Plan{Name: "web", Count: 7, Window: c.window}
		j := New(p)
		if c.begun != "" {
			if at(t, p, j, c.begun); !strings.HasSuffix(c.begun, "Tighten") {
				j.Done = j.Begun
			}
		}
		r := plans.Limits{PauseAfter: c.pause}
		if c.until >= 0 {
			r.Until = &c.until
		}
		if err := j.Limit(p, r); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := waves(p, j.Leg); got != c.want || j.PauseAt != c.at {
			t.Errorf("%+v: waves %q, pause at %d", c, got, j.PauseAt)
		}
		if next, began, _ := j.Next(p); began && next.Moves() {
			t.Errorf("%+v: the next step, %s, counts as begun", c, next.ID())
		}
	}
}

func TestARouteIsRefusedWhereItCannotBeTaken(t *testing.T) {
	outside, here := int32(7), int32(5)
	for _, c := range []struct {
		begun string
		r     plans.Limits
		want  string
	}{
		{"", plans.Limits{Until: &outside}, "expected an ordinal from 0 to 6"},
		{"6/Relax", plans.Limits{Until: &outside}, "expected an ordinal from 0 to 5"},
		{"6/Reserve", plans.Limits{Until: &here}, "[6] in flight"},
		{"6/Shrink", plans.Limits{PauseAfter: 1}, "[6] in flight"},
		{"0/Relax", plans.Limits{PauseAfter: 1}, "no ordinal left"},
	} {
		p := &plans.Plan{Name: "web", Count: 7, Window: 1}
		j := New(p)
		if c.begun != "" {
			at(t, p, j, c.begun)
			if strings.HasSuffix(c.begun, "Relax") {
				j.Done = j.Begun
			}
		}
		if err := j.Limit(p, c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("at %q: got %v, expected %q", c.begun, err, c.want)
		}
	}
}

func TestASplitGoesOnFromWhereItEnded(t *testing.T) {
	p := planstest.Three()
	j := New(p)
	split := int32(4)
	if err := j.Limit(p, plans.Limits{Until: &split}); err != nil {
		t.Fatal(err)
	}
	at(t, p, j, "4/Relax").Done = j.Begun
	j.Outcome = j.Leg.Outcome(p)
	if _, _, more := j.Next(p); more || j.Outcome != plans.Split {
		t.Errorf("it goes on, or ended as %q", j.Outcome)
	}
	back := *j
	back.StartLeg(p, plans.Abort)
	if got := waves(p, back.Leg); got != "4" {
		t.Errorf("rolls back %q, expected 4", got)
	}
	if err := j.Limit(p, plans.Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := walk(p, j.Leg); !strings.HasPrefix(got, "3/Tighten") || !strings.HasSuffix(got, "2/Relax") || j.Leg.Outcome(p) != plans.Moved {
		t.Errorf("goes on with %s", got)
	}
	back = *j
	back.StartLeg(p, plans.Abort)
	if got := waves(p, back.Leg); got != "4" {
		t.Errorf("rolls back %q before anything more has moved, expected 4", got)
	}
}

// A request that came with a finalize that did not begin must not outlive an abort: the record could not
// make room for another plan.
func TestOnlyACleanCarriesTheWishToKeepNames(t *testing.T) {
	for direction, want := range map[plans.Direction]bool{plans.Finalize: true, plans.Abort: false} {
		p := planstest.Three()
		j := New(p)
		j.KeepNames = true
		j.StartLeg(p, direction)
		if j.KeepNames != want {
			t.Errorf("%s: names are kept: %v, expected %v", direction, j.KeepNames, want)
		}
	}
}

// An abort of a wave that has not been released begins with that wave.
func TestAnAbortAtAGateWalksItsWaveBack(t *testing.T) {
	for _, id := range []string{"3/Quiesce", "3/Verify"} {
		p := planstest.Three()
		p.Gates = []plans.Gate{{Name: "drain", When: plans.BeforeShrink}}
		j := at(t, p, New(p), id)
		j.SkipGates, j.Passed = j.Begun, &plans.Passed{Seq: j.Begun}
		j.StartLeg(p, plans.Abort)
		if got := waves(p, j.Leg); got != "3 4" || j.SkipGates != 0 || j.Passed != nil {
			t.Errorf("abort at %s rolls back %q; skips up to %d, passed %v", id, got, j.SkipGates, j.Passed)
		}
	}
}

func TestSkippingIsForOneStepOrForTheWholeWayBack(t *testing.T) {
	p := planstest.Gated(t)
	j := at(t, p, New(p), "3/Grow") // the journal need not record that the plan is blocked
	if err := j.Skip(p); err != nil {
		t.Fatal(err)
	}
	if s, _ := p.Step(j.Leg, j.SkipGates); s.ID() != "3/Verify" || j.Skipped(p) != "skipped at web-3 Verify (--skip-gates)" {
		t.Errorf("skips up to %s: %s", s.ID(), j.Skipped(p))
	}
	leaves := at(t, p, New(p), "3/Shrink") // it is still there: its gates are asked again at this step
	if err := leaves.Skip(p); err != nil {
		t.Fatal(err)
	}
	if s, _ := p.Step(leaves.Leg, leaves.SkipGates); s.ID() != "3/Quiesce" {
		t.Errorf("before a wave leaves it skips up to %s", s.ID())
	}
	j.StartLeg(p, plans.Abort)
	if j.Skipped(p) != "" {
		t.Errorf("the abort begins with gates %s", j.Skipped(p))
	}
	if err := j.Skip(p); err != nil || j.Skipped(p) != "skipped during the abort (--skip-gates)" {
		t.Errorf("got %s, %v", j.Skipped(p), err)
	}
	for want, j := range map[string]*Journal{
		"no gate left": at(t, p, New(p), "2/Relax"),
		"has no gates": {Leg: plans.Leg{Direction: plans.Finalize}},
	} {
		if err := j.Skip(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
}

func walk(p *plans.Plan, l plans.Leg) string {
	var ids []string
	for seq := l.First; ; seq++ {
		s, more := p.Step(l, seq)
		if !more {
			return strings.Join(ids, " ")
		}
		ids = append(ids, s.ID())
	}
}

func waves(p *plans.Plan, l plans.Leg) string {
	var out []string
	for _, id := range strings.Fields(walk(p, l)) {
		if wave, ok := strings.CutSuffix(id, "/Tighten"); ok {
			out = append(out, wave)
		}
	}
	return strings.Join(out, " ")
}

// Gates that passed, or that the user wants skipped, at one step say nothing of the gates of the next (S2).
func TestAStepSeesTheGatesOfNoOtherStep(t *testing.T) {
	p, j := planstest.Three(), New(planstest.Three())
	j.SkipGates, j.Passed = 7, &plans.Passed{Seq: 7, Gates: []string{"quorum/4"}}
	for seq, own := range map[int]bool{7: true, 8: false} {
		s, _ := p.Step(j.Leg, seq)
		if m := j.At(p, s, true, plans.Stamp{}); m.Skips.Gates != own || (m.Passed != nil) != own {
			t.Errorf("step %d: gates skipped %t and passed %v, expected both %t", seq, m.Skips.Gates, m.Passed, own)
		}
	}
}

// The wave under way when a plan is aborted has not arrived. When it is found to have arrived after all, its
// flight from the destination begins, and it leaves as any other.
func TestAWaveThatLeavesAgainIsNoLongerReversed(t *testing.T) {
	p := planstest.Three()
	j := at(t, p, New(p), "3/Grow")
	wave := plans.Slice{Start: 3, Replicas: 1}
	j.Flight = &plans.Flight{Ordinals: wave, From: plans.Source}
	j.StartLeg(p, plans.Abort)
	came := j.Flight
	for seq := j.Leg.First; ; seq++ {
		s, more := p.Step(j.Leg, seq)
		if !more {
			break
		}
		if j.Flight = came; j.Unsure(s) != (s.Ordinals == wave && s.Moves()) {
			t.Errorf("%s, before it has left: unsure %t", s.ID(), j.Unsure(s))
		}
		if j.Flight = (&plans.Flight{Ordinals: wave, From: plans.Destination, Seq: j.Leg.First + 1}); j.Unsure(s) {
			t.Errorf("%s, when it has left the destination: unsure", s.ID())
		}
	}
}

// The first wave of an abort leaves like every other one if it had arrived when the plan was turned. Otherwise nobody
// knows where it is.
func TestAWaveThatHadArrivedIsNotReversed(t *testing.T) {
	p := planstest.Three()
	for _, c := range []struct {
		begun    string
		done     bool
		wave     string
		reversed bool
	}{
		{"3/Grow", false, "3", true},
		{"3/Grow", true, "3", true},
		{"3/Relax", false, "3", true},
		{"3/Relax", true, "3", false},
		{"2/Tighten", false, "2", true},
		{"2/Tighten", true, "2", true},
		{"2/Relax", true, "2", false},
	} {
		j := at(t, p, New(p), c.begun)
		if c.done {
			j.Done = j.Begun
		}
		j.StartLeg(p, plans.Abort)
		if first, _, _ := j.Next(p); first.ID() != c.wave+"/Tighten" || j.Unsure(first) != c.reversed {
			t.Errorf("turned at %s (done: %t): first %s, reversed %t; expected wave %s, reversed %t", c.begun, c.done, first.ID(), j.Unsure(first), c.wave, c.reversed)
		}
	}
}

// The first wave of an abort that had arrived is up until it leaves again, although the journal still has the flight of
// its way there.
func TestAWaveThatHadArrivedIsNotDown(t *testing.T) {
	p := planstest.Three()
	p.Gates = planstest.Asked(func(g *plans.Gate) { g.When = plans.BeforeShrink })
	j := at(t, p, New(p), "2/Relax")
	j.Done, j.Flight = j.Begun, &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
	j.StartLeg(p, plans.Abort)
	for s, _, _ := j.Next(p); s.Op != plans.Vacate; s, _, _ = j.Next(p) {
		if moved, inFlight := j.Places(p); j.Down(p) || moved != 3 || inFlight != 0 {
			t.Errorf("at %s: down %t, %d moved, %d in flight", s.ID(), j.Down(p), moved, inFlight)
		}
		j.Done, j.Begun = s.Seq, s.Seq
		if s.Op == plans.Shrink {
			j.Flight = &plans.Flight{Ordinals: s.Ordinals, From: s.From}
		}
	}
	if !j.Down(p) {
		t.Error("after it has left it is not down")
	}
}
