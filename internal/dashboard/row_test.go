package dashboard

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func plan(window int32, gates ...plans.Gate) *plans.Plan {
	return &plans.Plan{
		Name: "web", ID: "web-abc", Count: 5, Start: 2, MaxUnavailable: 2, Window: window, Gates: gates,
		Source:      plans.Ref{Cluster: "east", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "west", Context: "west", Namespace: "shop", Name: "web"},
	}
}

// take records that a step was begun, as the engine does: the facts of the flight before its first pod goes.
func take(p *plans.Plan, j *journal.Journal, s plans.Step) {
	u := plans.Undo{}
	if s.Op == plans.Shrink {
		u.Flight = &plans.Flight{Ordinals: s.Ordinals, From: s.From}
	}
	j.Begin(p, s, u)
	j.Done = s.Seq - 1
}

// At every step of a move, and of an abort from anywhere, each ordinal is counted once: on the source, on the
// destination or in flight.
func TestEachOrdinalIsCountedOnce(t *testing.T) {
	for _, p := range []*plans.Plan{plan(1), plan(2), plan(2, plans.Gate{Name: "a", When: plans.BeforeShrink})} {
		for stop := 1; stop <= p.Length(p.FirstLeg())+1; stop++ {
			j := journal.New(p)
			there := walk(t, p, j, stop, 0)
			if stop > p.Length(p.FirstLeg()) {
				if there != p.Count {
					t.Fatalf("at the end %d have moved", there)
				}
				continue
			}
			before := New("ns", p.Name, "Moving", p, j)
			j.StartLeg(p, plans.Abort)
			back := New("ns", p.Name, "Aborting", p, j)
			if back.Moved > before.Moved+before.InFlight || back.Moved+back.InFlight < before.Moved { // what has just arrived may be in flight
				t.Errorf("stopped at %d with %d moved and %d in flight, the abort begins with %d and %d", stop, before.Moved, before.InFlight, back.Moved, back.InFlight)
			}
			if left := walk(t, p, j, 10000, back.Moved); left != 0 {
				t.Errorf("stopped at %d, the abort leaves %d", stop, left)
			}
		}
	}
}

// walk takes the steps before number stop of a leg, checks the row at each, and returns how many are on the
// destination then.
func walk(t *testing.T, p *plans.Plan, j *journal.Journal, stop int, was int32) int32 {
	t.Helper()
	for {
		s, _, more := j.Next(p)
		r := New("ns", p.Name, "Moving", p, j)
		if r.Moved < 0 || r.Moved > p.Count || r.InFlight < 0 || r.InFlight > p.Window || r.Moved+r.InFlight > p.Count {
			t.Fatalf("at %s: %d moved, %d in flight", s.ID(), r.Moved, r.InFlight)
		}
		back := j.Leg.Direction == plans.Abort
		if !back && r.Moved < was || back && r.Moved > was {
			t.Errorf("at %s of %s %d have moved, before %d", s.ID(), j.Leg.Direction, r.Moved, was)
		}
		was = r.Moved
		if !more || s.Seq >= stop {
			return r.Moved
		}
		take(p, j, s)
		j.Done = s.Seq
		j.Begun = max(j.Begun, s.Seq)
	}
}

// An outcome says where everything is.
func TestTheRowOfAPlanThatHasEnded(t *testing.T) {
	p := plan(1)
	for outcome, want := range map[plans.Outcome]int32{plans.Moved: 5, plans.Finalized: 5, plans.Aborted: 0, plans.Split: 3} {
		j := journal.New(p)
		j.Outcome = outcome
		switch outcome {
		case plans.Split:
			j.Leg.Lowest = p.End() - 3
			j.Done = p.Length(j.Leg)
		case plans.Finalized:
			j.Leg.Direction = plans.Finalize
		case plans.Moved, plans.Aborted:
		}
		if r := New("ns", p.Name, plans.State(outcome), p, j); r.Moved != want || r.InFlight != 0 || r.Attention {
			t.Errorf("%s: %+v, expected %d moved", outcome, r, want)
		}
	}
}

// A plan that needs the user is shown as one, whatever is known of it.
func TestWhatNeedsTheUserIsShown(t *testing.T) {
	p := plan(1)
	if r := New("ns", "web", "Unreadable", nil, nil); !r.Attention || r.Ordinals != 0 {
		t.Errorf("%+v", r)
	}
	if r := New("ns", "web", "Blocked", p, &journal.Journal{Leg: p.FirstLeg()}); !r.Attention {
		t.Errorf("%+v", r)
	}
	if r := New("ns", "web", "Moving", p, &journal.Journal{Leg: p.FirstLeg(), Overdue: "volume a is attached"}); !r.Attention {
		t.Errorf("%+v", r)
	}
	if r := New("ns", "web", "PlanReady", p, nil); r.Attention || r.Moved != 0 || r.Ordinals != 5 {
		t.Errorf("%+v", r)
	}
}
