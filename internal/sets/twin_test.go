package sets

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The plan does what it shows to the user, or the step that creates the destination set does nothing.
func TestAStepRefusesAPlanThatSaysOtherThanItsPatchesDo(t *testing.T) {
	n := int32(3)
	set := planstest.Varied()
	set.Spec.Replicas = &n
	for name, c := range planstest.Misstated() {
		p := planstest.Eventful(t)
		c.Change(p)
		observed, err := Steps{Pair: clusters.Pair{Plan: p}}.twinned(plans.StepContext{}, set, plans.Undo{})
		if err != nil || (observed.Standing == plans.Conflict) != (c.Want != "") || !strings.Contains(observed.Reason, c.Want) {
			t.Errorf("%s: the step sees %s %q, %v; expected %q", name, observed.Standing, observed.Reason, err, c.Want)
		}
	}
}
