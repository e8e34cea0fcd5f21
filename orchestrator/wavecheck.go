package orchestrator

import (
	"context"

	"github.com/stsmigrate/stsmigrate/plans"
)

// waveCheck is the CheckWave of the wave under way. It is asked when Tighten begins, beside
// what Tighten waits for, and its answer is waited for before anything is taken down.
type waveCheck struct {
	wave   plans.Slice
	answer chan checked // nil when nothing is asked
	clean  int          // the Shrink of the last wave of which there was nothing to say
}

type checked struct {
	found []Finding
	err   error
}

// barred stops a wave that must not go.
func (e *Engine) barred(ctx context.Context, step plans.Step, began bool) (plans.Sight, error) {
	switch {
	case e.CheckWave == nil || began:
	case step.Op == plans.Tighten && (e.answer == nil || e.wave != step.Ordinals):
		e.askChecks(ctx, step.Ordinals)
	case step.Op == plans.Shrink && e.clean != step.Seq:
		return e.hearChecks(ctx, step)
	}
	return plans.Done(), nil
}

func (e *Engine) askChecks(ctx context.Context, wave plans.Slice) {
	answer, j := make(chan checked, 1), *e.journal // the engine goes on with its own
	e.wave, e.answer = wave, answer
	go func() {
		found, err := e.CheckWave(ctx, &j, wave)
		answer <- checked{found, err}
	}()
}

func (e *Engine) hearChecks(ctx context.Context, step plans.Step) (plans.Sight, error) {
	if e.answer == nil || e.wave != step.Ordinals {
		e.askChecks(ctx, step.Ordinals)
	}
	var c checked
	select {
	case c = <-e.answer:
	case <-ctx.Done():
		return plans.Sight{}, ctx.Err()
	}
	e.answer = nil
	if c.err != nil {
		return plans.Sight{}, c.err
	}
	if len(c.found) == 0 {
		e.clean = step.Seq
		return plans.Done(), nil
	}
	return plans.Stop(Words(c.found)), nil
}
