package engine

import (
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Advice returns what the user can do next with a plan, or "" if nothing is to be done. holder is the process
// that carries the plan out, or "". work reports whether an orchestrator has anything to do for the plan, and
// command returns the command line of a verb.
func Advice(p *plans.Plan, j *journal.Journal, holder string, work bool, command func(verb string) string) string {
	next, _ := (&View{Holder: holder}).nextOf(p, j, work, command)
	return next
}
