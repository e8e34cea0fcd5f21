package plans_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

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

func TestMoveTakesTheHighestOrdinalFirst(t *testing.T) {
	p := planstest.Three()
	want := "Freeze 2/Protect 3/Protect 4/Protect " +
		"4/Tighten 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Relax " +
		"3/Tighten 3/Shrink 3/Vacate 3/Release 3/Reserve 3/Claim 3/Grow 3/Relax " +
		"2/Tighten 2/Shrink 2/Vacate 2/Release 2/Reserve 2/Claim 2/Grow 2/Relax"
	if diff := cmp.Diff(want, walk(p, p.FirstLeg())); diff != "" {
		t.Error(diff)
	}
}

func TestReturnWalksTheOrdinalThatMovedLastBackFirst(t *testing.T) {
	want := "3/Tighten 3/Shrink 3/Vacate 3/Release 3/Reserve 3/Claim 3/Grow 3/Relax " +
		"4/Tighten 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Relax " +
		"Retire 2/Settle 3/Settle 4/Settle Thaw"
	if diff := cmp.Diff(want, walk(planstest.Three(), plans.Leg{Direction: plans.Abort, First: 40, Lowest: 3, End: 5})); diff != "" {
		t.Error(diff)
	}
}

func TestFinalizeDeletesTheSource(t *testing.T) {
	if diff := cmp.Diff("Retire 2/Settle 3/Settle 4/Settle Thaw", walk(planstest.Three(), plans.Leg{Direction: plans.Finalize, First: 29, Lowest: 5, End: 5})); diff != "" {
		t.Error(diff)
	}
}

// From the gates before a wave leaves to the budgets after it has arrived, a pause would leave ordinals down, or
// budgets tight.
func TestAPauseTakesEffectOnlyBetweenWaves(t *testing.T) {
	p := planstest.Three()
	p.Gates, p.Shared = []plans.Gate{{}}, []plans.SharedVolume{{}}
	for _, l := range []plans.Leg{p.FirstLeg(), {Direction: plans.Abort, First: 40, Lowest: 3, End: 5}} {
		for seq := l.First; ; seq++ {
			s, more := p.Step(l, seq)
			if !more {
				break
			}
			if want := !s.Moves() || s.Op == plans.Tighten; s.Op.Boundary() != want {
				t.Errorf("%s of %s is a boundary: %t, expected %t", s.ID(), l.Direction, s.Op.Boundary(), want)
			}
		}
	}
}

// waves lists the waves of a leg.
func waves(p *plans.Plan, l plans.Leg) string {
	var out []string
	for _, id := range strings.Fields(walk(p, l)) {
		if wave, ok := strings.CutSuffix(id, "/Tighten"); ok {
			out = append(out, wave)
		}
	}
	return strings.Join(out, " ")
}

func TestAWindowMovesSeveralOrdinalsPerWave(t *testing.T) {
	for _, c := range []struct {
		window int32
		leg    plans.Leg
		want   string
	}{
		{1, plans.Leg{Direction: plans.Move, End: 7}, "6 5 4 3 2 1 0"},
		{3, plans.Leg{Direction: plans.Move, End: 7}, "4..6 1..3 0"},
		{3, plans.Leg{Direction: plans.Move, End: 7, Head: 1}, "6 3..5 0..2"},
		{3, plans.Leg{Direction: plans.Move, End: 7, Head: 2, Lowest: 2}, "5..6 2..4"},
		{9, plans.Leg{Direction: plans.Move, End: 7}, "0..6"},
		{3, plans.Leg{Direction: plans.Move, End: 3, Lowest: 1}, "1..2"},
		{3, plans.Leg{Direction: plans.Abort, End: 7, Lowest: 2}, "2..4 5..6"},
		{3, plans.Leg{Direction: plans.Abort, End: 7, Lowest: 2, Head: 1}, "2 3..5 6"},
		{3, plans.Leg{Direction: plans.Abort, End: 7, Lowest: 7}, ""},
	} {
		p := &plans.Plan{Count: 7, Window: c.window}
		if got := waves(p, c.leg); got != c.want {
			t.Errorf("window %d, leg %+v: waves %q, expected %q", c.window, c.leg, got, c.want)
		}
	}
}

func TestSlicesAreWholeAtEveryWave(t *testing.T) {
	p := planstest.Three()
	for _, wave := range []plans.Slice{{2, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 2}, {2, 3}} {
		for _, from := range []plans.Side{plans.Source, plans.Destination} {
			for has := 0; has < 3; has++ { // on the side from, in flight, on the other side
				s, d := p.Slice(plans.Source, wave, has == 0 == (from == plans.Source) && has != 1), p.Slice(plans.Destination, wave, has == 2 == (from == plans.Source) && has != 1)
				inFlight := int32(0)
				if has == 1 {
					inFlight = wave.Replicas
				}
				if s.Start != p.Start || d.End() != p.End() || s.Replicas+d.Replicas+inFlight != p.Count {
					t.Errorf("wave %s, from %s, has %d: source %s, destination %s", wave, from, has, s, d)
				}
			}
		}
	}
}
