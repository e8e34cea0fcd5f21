package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// unasked reports whether a wave would leave now whose checks this process has not made: an earlier one has recorded that it
// leaves, perhaps long ago, and has not sent the write.
func unasked(step plans.Step, began bool, observed plans.Observation) bool {
	return began && step.Op.Leaves() && observed.Standing == plans.Before
}

// barred returns an observation that stops a wave which must not go; otherwise it returns After.
func (e *Engine) barred(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	e.checks.Reached(step, e.Now)
	if e.CheckWave == nil || began {
		return plans.Done(), nil
	}
	if e.journal.Unsure(step) { // of a wave that is down, nothing is lost when it goes where it came from
		e.reads.Clear()
		if serves, err := e.world.Serves(ctx, step); err != nil || !serves {
			return plans.Done(), err
		}
	}
	if e.Checks != nil && !e.checked && e.journal.Leg.Direction == plans.Move {
		e.checked = true
		e.checks.Passed(e.plan.Ordinals(), e.journal.Leg, e.Checks.At.Time)
	}
	j := *e.journal // the check runs beside this process, which changes its own
	wave := wavecheck.Wave{Step: step, Leg: j.Leg, Next: func(seq int) (plans.Step, bool) { return e.plan.Step(j.Leg, seq) }}
	why, err := e.checks.Bars(ctx, wave, e.Now, func(ctx context.Context, about plans.Slice) (wavecheck.Answer, error) {
		return e.CheckWave(ctx, &j, about)
	})
	if err != nil || why == "" {
		return plans.Done(), err
	}
	return plans.Stop(reasons.ChecksFailed, why), nil
}
