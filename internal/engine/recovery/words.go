package recovery

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Words describes a recovered journal to the user.
func Words(p *plans.Plan, j *journal.Journal) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	way := map[plans.Direction]string{plans.Move: "a move to the destination (apply)", plans.Abort: "the way back to the source (abort)", plans.Finalize: "the end of a complete move (finalize)"}
	add("epoch %d, so that no earlier process can write", j.Epoch)
	add("the plan is on %s", way[j.Leg.Direction])
	if j.Leg.Direction == plans.Move && j.Leg.Lowest > p.Start {
		add("it ends in a split: the source keeps the ordinals below %d", j.Leg.Lowest)
	}
	if next, _, more := j.Next(p); more {
		add("the next step to be looked at is %s", next.ID())
	}
	if f := j.Flight; f != nil && len(f.Volumes) > 0 {
		add("ordinals %s are on neither side, and left the %s", f.Ordinals, f.From)
		for _, v := range f.Volumes {
			add("  volume %s of claim %s, disk %s", v.Name, p.ClaimName(f.From, v.Template, v.Ordinal), v.Handle)
		}
	}
	for _, side := range plans.Sides() {
		if r, known := j.Saved.Retention[side]; known {
			add("before the plan, the retention policy of the %s was whenDeleted %s, whenScaled %s", side, r.WhenDeleted, r.WhenScaled)
		}
		if b, known := j.Saved.Budgets[side]; known {
			add("before the plan, the budget of the %s was %s", side, pdb.Words(b))
		}
	}
	if s := j.Saved.Slice; s != nil {
		add("before the plan, the destination had the ordinals %s (start %d)", s, s.Start)
	}
	if j.KeepNames {
		add("the names outlive the plan")
	}
	if j.Detached {
		add("an orchestrator carries it out")
	}
	add("blocked: %s", j.Blocked)
	return out
}
