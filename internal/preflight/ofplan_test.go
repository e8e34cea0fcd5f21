package preflight

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAPlanIsForTheObjectsThatWereThere(t *testing.T) {
	checktest.Estate{}.Finds(t, PlanCurrent)
	i := checktest.Estate{}.Inspected(t)
	i.Now.Set = i.Now.Set.DeepCopy()
	i.Now.Set.UID = "another"
	found, err := PlanCurrent(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...changed since the plan was made: the source set was deleted and recreated")
}

func TestASetOfAnotherPlanIsNotMoved(t *testing.T) {
	for plan, want := range map[string]string{"": "", "web-abc": "FAIL ...it is being moved by plan web-abc...its record is gone, and the move has begun: rebuild it with `stsmigrate recover FILE`", "web-xyz": "FAIL ...it is being moved by plan web-xyz...finish that plan"} {
		for _, taken := range []bool{false, true} {
			i := checktest.Estate{}.Inspected(t)
			i.Taken, i.Now.Existing = taken, i.Now.Set.DeepCopy()
			if plan != "" {
				plans.Stamp{Plan: plan, Epoch: 1, Seq: 2}.Put(i.Now.Existing)
			}
			found, err := NotMigrating(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" || taken && plan == i.Plan.ID {
				checktest.ExpectFindings(t, found)
				continue
			}
			checktest.ExpectFindings(t, found, want)
		}
	}
}
