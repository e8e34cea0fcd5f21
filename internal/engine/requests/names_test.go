package requests

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A finalize that is held before its first step has taken nothing away, so the names may still be kept. Once a step has
// begun it is too late.
func TestNamesMayBeKeptUntilAFinalizeBegins(t *testing.T) {
	p := planstest.Eventful(t)
	j := journal.New(p)
	j.Outcome = plans.Moved
	j.StartLeg(p, plans.Finalize)
	begun := *j
	if err := KeepNames(p, j); err != nil || !j.KeepNames {
		t.Errorf("%v, kept %t", err, j.KeepNames)
	}
	begun.Begun = begun.Leg.First
	if err := KeepNames(p, &begun); err == nil || begun.KeepNames {
		t.Errorf("%v, kept %t", err, begun.KeepNames)
	}
}
