package plans

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A Migration may leave open how places are taken, by a word or by none, and then fits what was chosen for it. What it names
// besides must be so.
func TestHowPlacesAreTakenMayBeLeftOpen(t *testing.T) {
	for _, open := range []Proof{"", Chosen} {
		chosen := Placeholder{Proof: open, Image: "p:1"}
		for name, c := range map[string]struct {
			said, is Placeholder
			fits     bool
		}{
			"warm was chosen":        {chosen, Placeholder{Proof: Warm, Image: "p:1", Why: "it is another cluster"}, true},
			"schedule was chosen":    {chosen, Placeholder{Proof: Scheduled, Image: "p:1", Why: "x"}, true},
			"none was":               {chosen, Placeholder{Proof: NoProof, Why: "you may not"}, true},
			"there was no choice":    {Placeholder{Proof: open}, Placeholder{}, true},
			"no image is named":      {Placeholder{Proof: open}, Placeholder{Proof: Warm, Image: "p:1", Reach: nil}, true},
			"of another image":       {chosen, Placeholder{Proof: Warm, Image: "p:2"}, false},
			"of another class":       {Placeholder{Proof: open, PriorityClass: "low"}, Placeholder{Proof: Warm}, false},
			"less is reached":        {Placeholder{Proof: open, Reach: []string{"peers"}}, Placeholder{Proof: Warm}, false},
			"more is reached":        {Placeholder{Proof: open}, Placeholder{Proof: Warm, Reach: []string{"peers"}}, false},
			"nothing can be reached": {Placeholder{Proof: open, Reach: []string{"peers"}}, Placeholder{Proof: NoProof, Why: "you may not"}, false},
		} {
			if got := c.said.asks(c.is); got != c.fits {
				t.Errorf("%q, %s: %t", open, name, got)
			}
		}
		if why := chosen.Misfit(); why != "" {
			t.Error(why)
		}
		if err := chosen.refuse(); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("a plan leaves it open with %q: %v", open, err)
		}
	}
	for name, c := range map[string]struct {
		said, is Placeholder
		fits     bool
	}{
		"what was said":       {Placeholder{Proof: Warm}, Placeholder{Proof: Warm, Why: "it is another cluster"}, true},
		"less than was said":  {Placeholder{Proof: Warm}, Placeholder{Proof: Scheduled}, false},
		"none, as was said":   {Placeholder{Proof: NoProof}, Placeholder{Proof: NoProof, Why: "you may not"}, true},
		"none, in two words":  {Placeholder{Proof: NoProof}, Placeholder{}, true},
		"one, against a word": {Placeholder{Proof: NoProof}, Placeholder{Proof: Warm}, false},
	} {
		if got := c.said.asks(c.is); got != c.fits {
			t.Errorf("%s: %t", name, got)
		}
	}
	p := &Plan{Placeholder: Placeholder{Proof: Warm, Why: "it is another cluster"}}
	if d := p.Declared(); !reflect.DeepEqual(d.Placeholder, Placeholder{Proof: Warm}) {
		t.Errorf("it is declared as %+v", d.Placeholder)
	}
	if err := (Placeholder{}).refuse(); err != nil {
		t.Errorf("a plan of before there was a choice: %v", err)
	}
}

// Off is a word, with and without quotes: YAML reads the bare one as false. Nothing else than a word is one.
func TestOffIsAWordInYAML(t *testing.T) {
	const file = "apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec: {source: {name: web}, placeholder: {proof: %s}}\n"
	for said, want := range map[string]Proof{"off": NoProof, `"off"`: NoProof, "false": NoProof, "warm": Warm, `""`: "", "auto": Chosen} {
		m, err := DecodeMigration(fmt.Appendf(nil, file, said))
		if err != nil || m.Spec.Placeholder.Proof != want {
			t.Errorf("%s: %v, %+v", said, err, m)
		}
	}
	for _, said := range []string{"on", "1", "[]", "none"} {
		if m, err := DecodeMigration(fmt.Appendf(nil, file, said)); err == nil {
			t.Errorf("%s is %+v", said, m.Spec.Placeholder)
		}
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
		"not named":     {Placeholder{Proof: Warm}, has, true},
		"named":         {has, has, true},
		"another":       {Placeholder{Proof: Warm, Image: "a:2"}, has, false},
		"none":          {Placeholder{Proof: Warm, Image: NoImage}, has, false},
		"another proof": {Placeholder{Proof: Scheduled}, has, false},
		"off":           {Placeholder{Proof: NoProof}, has, false},
	} {
		if c.said.asks(c.has) != c.same {
			t.Errorf("%s: %v", name, !c.same)
		}
	}
	if got := (Placeholder{Proof: Warm, Image: NoImage}).Or("a:1"); got.Program() != "" {
		t.Errorf("none is %+v", got)
	}
	for _, open := range []Proof{"", Chosen} {
		if got := (Placeholder{Proof: open}); got.Or("a:1").Image != "a:1" {
			t.Errorf("%q takes an image that is not named as well", open)
		}
	}
	if got := (Placeholder{Proof: NoProof}).Or("a:1"); got.Image != "" {
		t.Errorf("where none is made: %+v", got)
	}
	if got := (Placeholder{Proof: Scheduled}).Or("a:1"); got.Program() != "a:1" {
		t.Errorf("%+v", got)
	}
}
