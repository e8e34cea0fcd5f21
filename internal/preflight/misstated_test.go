package preflight

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The user reads the changes that a plan lists: they must match its patches, or the checks refuse the plan.
func TestAPlanThatSaysOtherThanItsPatchesDoIsRefused(t *testing.T) {
	n := int32(3)
	set := planstest.Varied()
	set.Spec.Replicas = &n
	for name, c := range planstest.Misstated() {
		p := planstest.Eventful(t)
		c.Change(p)
		seen, err := plans.Fingerprints(set, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Seen = seen
		i := check.Inspect(p, nil)
		i.Now.Set = set
		found, err := PlanCurrent(t.Context(), i)
		if err != nil || (len(found) > 0) != (c.Want != "") || len(found) > 0 && !strings.Contains(found[0].Saw, c.Want) {
			t.Errorf("%s: the check finds %+v, %v; expected %q", name, found, err, c.Want)
		}
	}
}
