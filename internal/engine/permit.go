package engine

import (
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// waitsForPermit is the reason of a wave that could begin but has no permit.
const waitsForPermit = "the wave begins as soon as the orchestrator has fewer than --cluster-waves waves under way in its clusters"

// begins reports whether the step is the first of a wave and both budgets are still open.
func begins(j *journal.Journal, step plans.Step) bool {
	return step.Op.Tightens() && j.TightSince == nil
}

// permitted reports whether a wave may begin or continue. A wave whose budgets are tight waits for no permit,
// and neither does a step that moves nothing.
func (e *memory) permitted(step plans.Step) bool {
	return !begins(e.journal, step) || e.Permit.Acquire()
}

// retainPermit updates the permit with what the wave waits for now.
func (e *memory) retainPermit(step plans.Step, observed plans.Observation, err error) {
	waits := err != nil || observed.Standing == plans.During
	switch {
	case !step.Moves():
	case waits && begins(e.journal, step):
		e.Permit.Release() // other waves go first
	case err != nil, waits && (observed.Idle || step.Op.Gated()):
		e.Permit.Retain("")
	case step.Op.Receives():
		e.Permit.Retain(step.To())
	default:
		e.Permit.Retain(step.From)
	}
}
