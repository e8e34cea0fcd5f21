package journal

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// An abort that is turned moves the wave that it may have touched last first, and after that the ordinals below. It has
// no steps that protect, since everything is protected once a wave has begun.
func TestAnAbortThatIsTurnedBeginsWithItsLastWave(t *testing.T) {
	p := planstest.Three()
	for _, c := range []struct {
		begun  string // the last step of the abort that has begun
		done   bool   // whether it is done
		first  string // the first step of the Move
		unsure bool
	}{
		{"", false, "2/Tighten", true},
		{"2/Shrink", false, "2/Tighten", true},
		{"2/Grow", true, "2/Tighten", true},
		{"2/Relax", true, "2/Tighten", false},
		{"3/Tighten", false, "3/Tighten", true},
		{"4/Relax", true, "4/Tighten", false},
	} {
		j := at(t, p, New(p), "2/Grow")
		j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source, Seq: j.Begun - 1}
		j.StartLeg(p, plans.Abort)
		if c.begun != "" {
			j = at(t, p, j, c.begun)
		}
		if c.done {
			j.Done = j.Begun
		}
		begun := j.Begun
		j.StartLeg(p, plans.Move)
		first, _, more := j.Next(p)
		if !more || first.ID() != c.first || first.From != plans.Source || first.Seq != begun+1 || j.Unsure(first) != c.unsure {
			t.Errorf("turned at %s (done: %t): %s (step %d), unsure %t; expected %s, unsure %t", c.begun, c.done, first.ID(), first.Seq, j.Unsure(first), c.first, c.unsure)
		}
		if err := j.validate(p); err != nil {
			t.Errorf("turned at %s: %v", c.begun, err)
		}
		for seq := first.Seq; ; seq++ {
			s, more := p.Step(j.Leg, seq)
			if !more {
				break
			}
			if !s.Moves() {
				t.Errorf("turned at %s: step %s", c.begun, s.ID())
			}
		}
	}
}

// Before anything has left, a turned plan begins anew. After Finalize it has nothing to move.
func TestAPlanThatHasNothingUnderWayIsTurned(t *testing.T) {
	p := planstest.Three()
	j := at(t, p, New(p), "3/Protect")
	j.StartLeg(p, plans.Abort)
	j.StartLeg(p, plans.Move)
	if s, _, _ := j.Next(p); s.Op != plans.Freeze || j.Leg.Turned {
		t.Errorf("it begins with %s", s.ID())
	}
	j = at(t, p, New(p), "2/Relax")
	j.Done, j.Outcome = j.Begun, plans.Moved
	j.StartLeg(p, plans.Finalize)
	j.StartLeg(p, plans.Move)
	if s, _, more := j.Next(p); more || j.Leg.Outcome(p) != plans.Moved {
		t.Errorf("after Finalize it has the step %s, and would be %s", s.ID(), j.Leg.Outcome(p))
	}
	if moved, away := j.Places(p); moved != p.Count || away != 0 || j.validate(p) != nil {
		t.Errorf("%d moved, %d away, %v", moved, away, j.validate(p))
	}
	j.StartLeg(p, plans.Abort)
	if s, _, _ := j.Next(p); s.ID() != "2/Tighten" || j.Unsure(s) {
		t.Errorf("the abort after that begins with %s, unsure %t", s.ID(), j.Unsure(s))
	}
}

// The side on which the pods of a wave ran last tells what has to be proven (S1).
func TestAWaveThatTurnsTwiceIsProvenWhereItRanLast(t *testing.T) {
	p := planstest.Three()
	j := at(t, p, New(p), "3/Vacate")
	j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 3, Replicas: 1}, From: plans.Source, Seq: j.Begun - 1}
	for _, c := range []struct {
		to                plans.Direction
		reversed, resumed bool
	}{{plans.Abort, true, false}, {plans.Move, false, true}, {plans.Abort, true, false}} {
		j.StartLeg(p, c.to)
		s, _, _ := j.Next(p)
		if m := j.At(p, s, false, plans.Stamp{}); m.Reversed != c.reversed || m.Resumed != c.resumed {
			t.Errorf("%s: reversed %t, resumed %t; expected %t, %t", c.to, m.Reversed, m.Resumed, c.reversed, c.resumed)
		}
	}
}
