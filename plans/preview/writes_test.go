package preview

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

//nolint:gochecknoglobals // a flag of the test
var golden = flag.Bool("update", false, "write the golden files")

// What is shown of the writes is what Writes lists (test/simulation compares that with what is written).
func TestTheListOfWrites(t *testing.T) {
	p := planstest.Three()
	p.Count, p.Budget = 2, plans.Budget{Source: "web", Destination: "web", SourceExisted: true}
	got := RenderWrites(p, p.FirstLeg())
	const file = "testdata/writes.txt"
	if *golden {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v; got\n%s", err, got)
	}
}

// A leg that goes on from a split neither stores the plan nor freezes the sets again.
func TestALegFromASplitDoesNotBeginAgain(t *testing.T) {
	p := planstest.Three()
	l := p.FirstLeg()
	l.End--
	for _, w := range Writes(p, l) {
		if w.Step == "Freeze" || w.Verb == part.Create && w.Name == "stsmigrate-"+p.Name || w.Verb == part.Create && w.Kind == "PodDisruptionBudget" {
			t.Errorf("%+v", w)
		}
	}
}

// An abort writes the same waves, with the sides swapped.
func TestAnAbortMovesBack(t *testing.T) {
	p := planstest.Three()
	l := plans.Leg{Direction: plans.Abort, First: 1, Lowest: p.End() - 1, End: p.End()}
	var released, retired bool
	for _, w := range Writes(p, l) {
		released = released || strings.HasSuffix(w.Step, "/Release") && w.Side == plans.Destination && w.Verb == part.Delete
		retired = retired || w.Step == "Retire" && w.Side == plans.Destination
	}
	if !released || !retired {
		t.Errorf("released %v, retired %v", released, retired)
	}
}
