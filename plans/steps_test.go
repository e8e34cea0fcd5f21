package plans

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// three returns a plan over the ordinals 2, 3 and 4 of a set named web.
func three() *Plan {
	return &Plan{
		Name: "web", ID: "web-abc", Start: 2, Count: 3, MaxUnavailable: 1, Window: 1,
		Source:      Ref{Cluster: "one", Namespace: "shop", Name: "web"},
		Destination: Ref{Cluster: "one", Namespace: "mall", Name: "web"},
		Claims:      []ClaimMove{{Template: "data", Mode: Rebind}},
	}
}

func walk(p *Plan, l Leg) string {
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
	p := three()
	want := "Freeze 2/Protect 3/Protect 4/Protect " +
		"4/Tighten 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Relax " +
		"3/Tighten 3/Shrink 3/Vacate 3/Release 3/Reserve 3/Claim 3/Grow 3/Relax " +
		"2/Tighten 2/Shrink 2/Vacate 2/Release 2/Reserve 2/Claim 2/Grow 2/Relax"
	if diff := cmp.Diff(want, walk(p, NewJournal(p).Leg)); diff != "" {
		t.Error(diff)
	}
}

func TestReturnWalksTheOrdinalThatMovedLastBackFirst(t *testing.T) {
	want := "3/Tighten 3/Shrink 3/Vacate 3/Release 3/Reserve 3/Claim 3/Grow 3/Relax " +
		"4/Tighten 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Relax " +
		"Retire 2/Settle 3/Settle 4/Settle Thaw"
	if diff := cmp.Diff(want, walk(three(), Leg{Direction: Abort, First: 40, Lowest: 3, End: 5})); diff != "" {
		t.Error(diff)
	}
}

func TestCleanDeletesTheSourceAndSettlesEveryVolume(t *testing.T) {
	if diff := cmp.Diff("Retire 2/Settle 3/Settle 4/Settle Thaw", walk(three(), Leg{Direction: Finalize, First: 29, Lowest: 5, End: 5})); diff != "" {
		t.Error(diff)
	}
}

// waves lists the waves of a leg.
func waves(p *Plan, l Leg) string {
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
		leg    Leg
		want   string
	}{
		{1, Leg{Direction: Move, End: 7}, "6 5 4 3 2 1 0"},
		{3, Leg{Direction: Move, End: 7}, "4..6 1..3 0"},
		{3, Leg{Direction: Move, End: 7, Head: 1}, "6 3..5 0..2"},
		{3, Leg{Direction: Move, End: 7, Head: 2, Lowest: 2}, "5..6 2..4"},
		{9, Leg{Direction: Move, End: 7}, "0..6"},
		{3, Leg{Direction: Move, End: 3, Lowest: 1}, "1..2"},
		{3, Leg{Direction: Abort, End: 7, Lowest: 2}, "2..4 5..6"},
		{3, Leg{Direction: Abort, End: 7, Lowest: 2, Head: 1}, "2 3..5 6"},
		{3, Leg{Direction: Abort, End: 7, Lowest: 7}, ""},
	} {
		p := &Plan{Count: 7, Window: c.window}
		if got := waves(p, c.leg); got != c.want {
			t.Errorf("window %d, leg %+v: waves %q, expected %q", c.window, c.leg, got, c.want)
		}
	}
}

func TestSlicesAreWholeAtEveryWave(t *testing.T) {
	p := three()
	for _, wave := range []Slice{{2, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 2}, {2, 3}} {
		for _, from := range []Side{Source, Destination} {
			for has := 0; has < 3; has++ { // on the side from, in flight, on the other side
				s, d := p.Slice(Source, wave, has == 0 == (from == Source) && has != 1), p.Slice(Destination, wave, has == 2 == (from == Source) && has != 1)
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

// at returns the journal of a plan whose last begun step is the one with the given ID.
func at(t *testing.T, p *Plan, j *Journal, id string) *Journal {
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
		p := three()
		p.Window = c.window
		j := at(t, p, NewJournal(p), c.id)
		begun := j.Begun
		j.StartLeg(p, Abort)
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
		p := &Plan{Name: "web", Count: 7, Window: c.window}
		j := NewJournal(p)
		if c.begun != "" {
			if at(t, p, j, c.begun); !strings.HasSuffix(c.begun, "Tighten") {
				j.Done = j.Begun
			}
		}
		r := Limits{PauseAfter: c.pause}
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
		r     Limits
		want  string
	}{
		{"", Limits{Until: &outside}, "expected an ordinal from 0 to 6"},
		{"6/Relax", Limits{Until: &outside}, "expected an ordinal from 0 to 5"},
		{"6/Reserve", Limits{Until: &here}, "[6] in flight"},
		{"6/Shrink", Limits{PauseAfter: 1}, "[6] in flight"},
		{"0/Relax", Limits{PauseAfter: 1}, "no ordinal left"},
	} {
		p := &Plan{Name: "web", Count: 7, Window: 1}
		j := NewJournal(p)
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
	p := three()
	j := NewJournal(p)
	split := int32(4)
	if err := j.Limit(p, Limits{Until: &split}); err != nil {
		t.Fatal(err)
	}
	at(t, p, j, "4/Relax").Done = j.Begun
	j.Outcome = j.Leg.Outcome(p)
	if _, _, more := j.Next(p); more || j.Outcome != Split {
		t.Errorf("it goes on, or ended as %q", j.Outcome)
	}
	back := *j
	back.StartLeg(p, Abort)
	if got := waves(p, back.Leg); got != "4" {
		t.Errorf("rolls back %q, expected 4", got)
	}
	if err := j.Limit(p, Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := walk(p, j.Leg); !strings.HasPrefix(got, "3/Tighten") || !strings.HasSuffix(got, "2/Relax") || j.Leg.Outcome(p) != Moved {
		t.Errorf("goes on with %s", got)
	}
	back = *j
	back.StartLeg(p, Abort)
	if got := waves(p, back.Leg); got != "4" {
		t.Errorf("rolls back %q before anything more has moved, expected 4", got)
	}
}

// A request that came with a finalize that did not begin must not outlive an abort: the record could not
// make room for another plan.
func TestOnlyACleanCarriesTheWishToKeepNames(t *testing.T) {
	for direction, want := range map[Direction]bool{Finalize: true, Abort: false} {
		p := three()
		j := NewJournal(p)
		j.KeepNames = true
		j.StartLeg(p, direction)
		if j.KeepNames != want {
			t.Errorf("%s: names are kept: %v, expected %v", direction, j.KeepNames, want)
		}
	}
}

func TestOldValuesAreSavedOnce(t *testing.T) {
	p, j := three(), NewJournal(three())
	first, _, _ := j.Next(p)
	j.Begin(p, first, Undo{Saved: Saved{Slice: &Slice{Start: 7}}})
	j.Begin(p, first, Undo{Saved: Saved{Slice: &Slice{Start: 9}}})
	if j.Saved.Slice.Start != 7 {
		t.Errorf("saved start is %d, expected the first value, 7", j.Saved.Slice.Start)
	}
}

func TestBatchAnnouncesOnlyStepsOfOneWord(t *testing.T) {
	p, j := three(), NewJournal(three())
	freeze, _, _ := j.Next(p)
	j.Begin(p, freeze, Undo{})
	if j.Begun != 1 {
		t.Errorf("Freeze announces up to %d, expected itself, 1", j.Begun)
	}
	j.Done = 1
	hold, _, _ := j.Next(p)
	j.Begin(p, hold, Undo{})
	if last, _ := p.Step(j.Leg, j.Begun); last.ID() != "4/Protect" {
		t.Errorf("Protect announces up to %s, expected 4/Protect", last.ID())
	}
}
