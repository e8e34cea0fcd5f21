package plans

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// three is a plan over the ordinals 2, 3 and 4 of a set named web.
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
	want := "Freeze 2/Hold 3/Hold 4/Hold " +
		"4/Tighten 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Relax " +
		"3/Tighten 3/Shrink 3/Vacate 3/Release 3/Reserve 3/Claim 3/Grow 3/Relax " +
		"2/Tighten 2/Shrink 2/Vacate 2/Release 2/Reserve 2/Claim 2/Grow 2/Relax"
	if diff := cmp.Diff(want, walk(three(), Leg{Course: Move, First: 1})); diff != "" {
		t.Error(diff)
	}
}

func TestReturnWalksTheOrdinalThatMovedLastBackFirst(t *testing.T) {
	want := "3/Tighten 3/Shrink 3/Vacate 3/Release 3/Reserve 3/Claim 3/Grow 3/Relax " +
		"4/Tighten 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Relax " +
		"Retire 2/Settle 3/Settle 4/Settle Thaw"
	if diff := cmp.Diff(want, walk(three(), Leg{Course: Return, First: 40, Lowest: 3})); diff != "" {
		t.Error(diff)
	}
}

func TestCleanDeletesTheSourceAndSettlesEveryVolume(t *testing.T) {
	if diff := cmp.Diff("Retire 2/Settle 3/Settle 4/Settle Thaw", walk(three(), Leg{Course: Clean, First: 29})); diff != "" {
		t.Error(diff)
	}
}

func TestSlicesAreWholeAtEveryOrdinal(t *testing.T) {
	p := three()
	for o := p.Start; o < p.End(); o++ {
		for _, from := range []Side{Source, Destination} {
			for has := 0; has < 3; has++ { // on from, in flight, on the other side
				s, d := p.Slice(Source, o, has == 0 == (from == Source) && has != 1), p.Slice(Destination, o, has == 2 == (from == Source) && has != 1)
				inFlight := int32(0)
				if has == 1 {
					inFlight = 1
				}
				if s.Start != p.Start || d.Start+d.Replicas != p.End() || s.Replicas+d.Replicas+inFlight != p.Count {
					t.Errorf("ordinal %d, from %s, has %d: source %s, destination %s", o, from, has, s, d)
				}
			}
		}
	}
}

func TestDepartureBeginsWithTheOrdinalUnderWay(t *testing.T) {
	p := three()
	at := func(id string) *Journal {
		j := NewJournal(p)
		for seq := 1; ; seq++ {
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
	for id, lowest := range map[string]int32{"Freeze": 5, "3/Hold": 5, "4/Tighten": 4, "4/Grow": 4, "3/Release": 3, "2/Relax": 2} {
		j := at(id)
		begun := j.Begun
		j.Depart(p, Return)
		if j.Leg.Lowest != lowest || j.Leg.First != begun+1 {
			t.Errorf("abort at %s begins with ordinal %d at %d, expected %d at %d", id, j.Leg.Lowest, j.Leg.First, lowest, begun+1)
		}
	}
}

// A wish that came with a finalize that did not begin must not outlive a walk back: the
// record could not make room for another plan.
func TestOnlyACleanCarriesTheWishToKeepNames(t *testing.T) {
	for course, want := range map[Course]bool{Clean: true, Return: false} {
		p := three()
		j := NewJournal(p)
		j.KeepNames = true
		j.Depart(p, course)
		if j.KeepNames != want {
			t.Errorf("%s: names are kept: %v, expected %v", course, j.KeepNames, want)
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
	if last, _ := p.Step(j.Leg, j.Begun); last.ID() != "4/Hold" {
		t.Errorf("Hold announces up to %s, expected 4/Hold", last.ID())
	}
}
