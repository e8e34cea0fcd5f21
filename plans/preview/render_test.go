package preview

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The user approves numbers: what the budgets say while each wave is away, and how many ordinals are down then.
func TestThePreviewHasTheBudgetsOfEachWave(t *testing.T) {
	p := planstest.Three()
	p.Count, p.Start, p.MaxUnavailable, p.Window = 5, 0, 2, 2
	got := Render(p, p.FirstLeg())
	for _, want := range []string{
		"ORDINAL  SOURCE  DESTINATION  BUDGET OF THE SOURCE  OF THE DESTINATION  DOWN    WHAT HAPPENS\n",
		"3..4     [0..2]  [3..4]       allows 0              allows 0            2 of 2  stop web-3..4, hand over their 2 claims, start web-3..4\n",
		"0        []      [0..4]       allows 0              allows 1            1 of 2  stop web-0, hand over data-web-0, start web-0\n",
		"Total: 5 ordinals in 3 waves, 5 volumes.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// A table in which nothing changes tells nothing.
func TestNamesAreShownOnlyWhereTheyChange(t *testing.T) {
	p := planstest.Three()
	p.Names = plans.Names{Mode: plans.Bridge, Service: "web"}
	if got := Render(p, p.FirstLeg()); !strings.Contains(got, "OLD NAME") {
		t.Errorf("another namespace:\n%s", got)
	}
	p.Source.Cluster, p.Destination.Cluster, p.Destination.Namespace = "one", "two", p.Source.Namespace
	if got := Render(p, p.FirstLeg()); strings.Contains(got, "OLD NAME") {
		t.Errorf("the same names:\n%s", got)
	}
}
