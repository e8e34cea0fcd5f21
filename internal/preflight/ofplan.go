package preflight

import (
	"context"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// PlanCurrent refuses a plan whose sets or budget have changed since it was made, or that misstates its
// patches.
func PlanCurrent(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	now, err := plans.Fingerprints(i.Now.Set, i.Now.Existing, i.Now.SourceBudget)
	if err != nil {
		return nil, err
	}
	if changed := i.Plan.Seen.Changed(now); len(changed) > 0 {
		return []check.Finding{{
			Object: "plan " + i.Plan.Name, Saw: "changed since the plan was made: " + strings.Join(changed, ", "),
			Want: "everything as it was", Remedy: "make a new plan with `stsmigrate plan`",
		}}, nil
	}
	why, err := build.Misstated(i.Plan, i.Now.Set)
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		return []check.Finding{{Object: "plan " + i.Plan.Name, Saw: why, Want: "what its patches change", Remedy: "make a new plan with `stsmigrate plan`, and do not trust the origin of this one"}}, nil
	}
	return nil, nil
}

// NotMigrating refuses sets that carry the stamp of another plan.
func NotMigrating(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for side, set := range i.Sets {
		if s, ok := plans.Stamped(set); ok && !i.Ours(set) {
			remedy := "finish that plan (`stsmigrate finalize`) or abort it (`stsmigrate abort`)"
			if s.Plan == i.Plan.ID {
				remedy = "its record is gone, and the move has begun: rebuild it with `stsmigrate recover FILE`, and change nothing of the plan's objects before"
			}
			out = append(out, check.Finding{
				Object: i.Name(side), Saw: "it is being moved by plan " + s.Plan, Want: "no plan to be at work on it",
				Remedy: remedy,
			})
		}
	}
	return out, nil
}
