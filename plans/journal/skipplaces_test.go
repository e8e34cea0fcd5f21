package journal

import (
	"slices"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// placelessOf names the waves that may leave without their places.
func placelessOf(j *Journal, p *plans.Plan) (out []string) {
	for seq := j.Leg.First; ; seq++ {
		s, more := p.Step(j.Leg, seq)
		if !more {
			return slices.Compact(out)
		}
		if s.Op.TakesOver() && j.At(p, s, false, plans.Stamp{}).Skips.Places {
			out = append(out, p.Pods(s.Ordinals))
		}
	}
}

// A word to go on without the proof of a place is about the wave that leaves next, or about the whole of an abort. It ends with
// the direction.
func TestAWordForAPlaceIsAboutOneWave(t *testing.T) {
	p := planstest.Three()
	p.Placeholder.Proof = plans.Warm
	word := plans.Assurance{SkipPlaces: true}
	j := New(p)
	for _, c := range []struct {
		at   plans.Op // of the first wave
		want []string
	}{{plans.Tighten, []string{"web-4"}}, {plans.Shrink, []string{"web-4"}}, {plans.Vacate, []string{"web-4", "web-3"}}, {plans.Relax, []string{"web-4", "web-3"}}} {
		j = New(p)
		for s, _, more := j.Next(p); more && s.Op != c.at; s, _, more = j.Next(p) {
			j.Begin(p, s, plans.Undo{})
			j.Done = s.Seq
		}
		if err := j.Assure(p, word); err != nil {
			t.Fatalf("%s: %v", c.at, err)
		}
		if got := placelessOf(j, p); !slices.Equal(got, c.want) {
			t.Errorf("at %s: %q may leave without their places, expected %q", c.at, got, c.want)
		}
		last := c.want[len(c.want)-1]
		if said := strings.Join(Vouched(j, p), "; "); !strings.Contains(said, last+" may leave without proof of its place (--skip-places)") {
			t.Errorf("at %s: %q", c.at, said)
		}
	}
	j.StartLeg(p, plans.Abort)
	if j.Assurances.SkipPlaces != 0 {
		t.Error("the word of the move counts for the abort")
	}
	if err := j.Assure(p, word); err != nil || j.Assurances.SkipPlaces != plans.AllSteps || !strings.Contains(strings.Join(Vouched(j, p), ""), "may go back without proof of their places") {
		t.Errorf("%v, %d, %q", err, j.Assurances.SkipPlaces, Vouched(j, p))
	}
}

// A word for places has no meaning where none are taken.
func TestAWordForAPlaceNeedsPlaces(t *testing.T) {
	p := planstest.Three()
	word := plans.Assurance{SkipPlaces: true}
	for name, refuse := range map[string]func() *Journal{
		"a plan without places": func() *Journal { p.Placeholder = plans.Placeholder{}; return New(p) },
		"a finalize": func() *Journal {
			p.Placeholder.Proof = plans.Warm
			j := New(p)
			j.Leg.Direction = plans.Finalize
			return j
		},
	} {
		if err := refuse().Assure(p, word); err == nil || !strings.Contains(err.Error(), "--skip-places") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
