package records

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A request for one plan must not change what is declared of another one that may be under way.
func TestARequestChangesNothingOfAnotherPlan(t *testing.T) {
	home, p, other := fake.NewClientBuilder().Build(), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
	other.Ignored = []string{"images"}
	if err := other.Seal(); err != nil {
		t.Fatal(err)
	}
	pause := func(d *plans.Declaration) error { d.Paused = true; return nil }
	if err := Declare(t.Context(), home, "mall", p, func(*plans.Declaration) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := Declare(t.Context(), home, "mall", other, pause); err == nil || !strings.Contains(err.Error(), "approves a plan with the hash "+p.Hash) {
		t.Errorf("%v", err)
	}
	if d, err := ReadDeclared(t.Context(), home, "mall", "web"); err != nil || d.Spec.ApprovedHash != p.Hash || d.Spec.Paused {
		t.Errorf("declared is %+v, %v", d, err)
	}
	if err := Declare(t.Context(), home, "mall", p, pause); err != nil {
		t.Fatal(err)
	}
	if d, err := ReadDeclared(t.Context(), home, "mall", "web"); err != nil || !d.Spec.Paused {
		t.Errorf("declared is %+v, %v", d, err)
	}
}
