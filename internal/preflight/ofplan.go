package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// PlanCurrent refuses a plan whose sets or budget have changed since it was made, or that misstates its
// patches.
func PlanCurrent(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	now, err := plans.Fingerprints(i.Now.Set, i.Now.Existing, i.Now.SourceBudget)
	if err != nil {
		return nil, err
	}
	if changed := i.Plan.Seen.Changed(now); len(changed) > 0 {
		changed = append(changed, templateChanged(ctx, i, strings.Join(changed, ", "))...)
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

// templateChanged says which fields of the source's pod template have changed since the plan was made, and who wrote it
// last, but for what is said already. The old template is in the ControllerRevision that the plan names, if that is kept
// and may be read.
func templateChanged(ctx context.Context, i check.Inspection, said string) (out []string) {
	set, seen := i.Now.Set, i.Plan.Seen
	if seen.SourceRevision == "" || set.UID != seen.SourceUID {
		return nil
	}
	kept, err := i.Revisions(ctx, plans.Source, set)
	if err != nil {
		return nil // what has changed is said as far as it is known
	}
	for _, r := range kept {
		var was struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if r.Name != seen.SourceRevision || weight.Unmarshal(r.Data.Raw, &was) != nil {
			continue
		}
		before, err := plans.Fields(was.Spec.Template)
		now, err2 := plans.Fields(set.Spec.Template)
		if errors.Join(err, err2) != nil {
			return nil
		}
		fields := plans.FieldsChanged(before, now)
		for _, field := range fields {
			if !strings.Contains(said, "template."+field) {
				out = append(out, "template."+field)
			}
		}
		if len(fields) > 0 {
			out = append(out, "the template was last written by "+plans.Writer(set, "spec", "template"))
		}
	}
	return out
}

// NotMigrating refuses sets that carry the stamp of another plan, or of this one if its record is gone.
func NotMigrating(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	found := map[string]*check.Finding{}
	var by []string
	for side, set := range i.Sets {
		s, ok := plans.Stamped(set)
		if !ok || i.Ours(set) {
			continue
		}
		has := fmt.Sprintf("%s (it has the ordinals %s)", i.Name(side), plans.SliceOf(set))
		if f := found[s.Plan]; f != nil {
			f.Object += ", " + has
			continue
		}
		f := &check.Finding{
			Object: has, Saw: "it is being moved by plan " + s.Plan, Want: "no plan to be at work on it",
			Remedy: "finish that plan (`stsmigrate finalize`) or abort it (`stsmigrate abort`); `stsmigrate get -A` lists the plans",
		}
		if s.Plan == i.Plan.ID {
			f.Saw += ", which is this one: the move has begun, or is done, and its record is gone"
			f.Remedy = "rebuild the record with `stsmigrate recover FILE`, and change or delete nothing of the plan before; `stsmigrate status` then says how to go on"
		}
		found[s.Plan], by = f, append(by, s.Plan)
	}
	var out []check.Finding
	for _, plan := range by {
		out = append(out, *found[plan])
	}
	return out, nil
}
