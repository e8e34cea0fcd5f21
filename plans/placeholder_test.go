package plans

import (
	"strings"
	"testing"
)

// A Migration may leave open how places are taken, and then fits what was chosen for it. A plan never leaves it open.
func TestHowPlacesAreTakenMayBeLeftOpen(t *testing.T) {
	chosen := Placeholder{Proof: Chosen, Image: "p:1"}
	for name, c := range map[string]struct {
		said, is Placeholder
		fits     bool
	}{
		"warm was chosen":     {chosen, Placeholder{Proof: Warm, Image: "p:1", Why: "it is another cluster"}, true},
		"schedule was chosen": {chosen, Placeholder{Proof: Scheduled, Image: "p:1", Why: "x"}, true},
		"none was":            {chosen, Placeholder{Proof: NoProof, Why: "you may not"}, true},
		"of another image":    {chosen, Placeholder{Proof: Warm, Image: "p:2"}, false},
		"what was said":       {Placeholder{Proof: Warm}, Placeholder{Proof: Warm}, true},
		"less than was said":  {Placeholder{Proof: Warm}, Placeholder{Proof: Scheduled}, false},
		"none, in two words":  {Placeholder{}, Placeholder{Proof: NoProof, Why: "you may not"}, true},
	} {
		if got := c.said.asks(c.is); got != c.fits {
			t.Errorf("%s: %t", name, got)
		}
	}
	if why := chosen.Misfit(); why != "" {
		t.Error(why)
	}
	p := &Plan{Placeholder: Placeholder{Proof: Warm, Why: "it is another cluster"}}
	if d := p.Declared(); d.Placeholder != (Placeholder{Proof: Warm}) {
		t.Errorf("it is declared as %+v", d.Placeholder)
	}
	if err := (Placeholder{Proof: Chosen}).refuse(); err == nil || !strings.Contains(err.Error(), "expected what was chosen") {
		t.Errorf("a plan leaves it open: %v", err)
	}
}
