package plans

import (
	"reflect"
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
	if d := p.Declared(); !reflect.DeepEqual(d.Placeholder, Placeholder{Proof: Warm}) {
		t.Errorf("it is declared as %+v", d.Placeholder)
	}
	if err := (Placeholder{Proof: Chosen}).refuse(); err == nil || !strings.Contains(err.Error(), "expected what was chosen") {
		t.Errorf("a plan leaves it open: %v", err)
	}
}

// A declaration that names no image is about a plan with the one of the release that made it, and not about one without
// a placeholder.
func TestAnImageThatIsNotNamedMayBeAny(t *testing.T) {
	has := Placeholder{Proof: Warm, Image: "a:1"}
	for name, c := range map[string]struct {
		said, has Placeholder
		same      bool
	}{
		"not named":       {Placeholder{Proof: Warm}, has, true},
		"named":           {has, has, true},
		"another":         {Placeholder{Proof: Warm, Image: "a:2"}, has, false},
		"none":            {Placeholder{Proof: Warm, Image: NoImage}, has, false},
		"another proof":   {Placeholder{Proof: Scheduled}, has, false},
		"off":             {Placeholder{Proof: NoProof}, has, false},
		"nothing, of off": {Placeholder{}, Placeholder{Proof: NoProof}, true},
		"off, of nothing": {Placeholder{Proof: NoProof}, Placeholder{}, true},
	} {
		if c.said.asks(c.has) != c.same {
			t.Errorf("%s: %v", name, !c.same)
		}
	}
	if got := (Placeholder{Proof: Warm, Image: NoImage}).Or("a:1"); got.Program() != "" {
		t.Errorf("none is %+v", got)
	}
	if got := (Placeholder{Proof: Chosen}); !got.asks(has) || got.Or("a:1").Image != "a:1" {
		t.Error("auto takes an image that is not named as well")
	}
	if got := (Placeholder{}).Or("a:1"); got.Image != "" {
		t.Errorf("where none is made: %+v", got)
	}
	if got := (Placeholder{Proof: Scheduled}).Or("a:1"); got.Program() != "a:1" {
		t.Errorf("%+v", got)
	}
}
