package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/reasons"
)

// waveCheck is the CheckWave of the current wave. It starts when Tighten begins, in parallel with what
// Tighten waits for, and its result is awaited before anything is scaled down. A result is valid for a
// few seconds: a wave may wait for hours for a pod or a permit, and new objections may arise
// meanwhile, so it is checked again.
type waveCheck struct {
	wave   plans.Slice
	answer chan checked // nil while no check runs
	asked  time.Time
	clean  int // the Seq of the last Shrink whose check found nothing, and since when
	since  time.Time
}

// checkValidity is how long a result is valid.
const checkValidity = 5 * time.Second

type checked struct {
	why string // "" when nothing bars the wave
	err error
}

// barred returns an observation that stops a wave which must not go; otherwise it returns After.
func (e *Engine) barred(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	switch {
	case e.CheckWave == nil || began:
	case step.Op == plans.Tighten && (e.answer == nil || e.wave != step.Ordinals):
		e.askChecks(ctx, step.Ordinals)
	case step.Op == plans.Shrink && (e.clean != step.Seq || e.stale(e.since)):
		return e.hearChecks(ctx, step)
	}
	return plans.Done(), nil
}

// stale reports whether a result is too old. Without a clock every result is.
func (e *Engine) stale(since time.Time) bool {
	return e.Now == nil || clusters.Elapsed(since, e.Now()) > checkValidity
}

func (e *Engine) askChecks(ctx context.Context, wave plans.Slice) {
	answer, j := make(chan checked, 1), *e.journal
	e.wave, e.answer = wave, answer
	if e.Now != nil {
		e.asked = e.Now()
	}
	go func() {
		var c checked
		func() {
			defer plans.RecoverPanic(&c.err)
			c.why, c.err = e.CheckWave(ctx, &j, wave)
		}()
		answer <- c
	}()
}

// hearChecks waits for the result. It starts the check again BEFORE that if the last start is too long ago.
// The result of a check started here counts as new, however long the check takes.
func (e *Engine) hearChecks(ctx context.Context, step plans.Step) (plans.Observation, error) {
	if e.answer == nil || e.wave != step.Ordinals || e.stale(e.asked) {
		e.askChecks(ctx, step.Ordinals)
	}
	var c checked
	select {
	case c = <-e.answer:
	case <-ctx.Done():
		return plans.Observation{}, ctx.Err()
	}
	e.answer = nil
	if c.err != nil {
		return plans.Observation{}, c.err
	}
	if c.why == "" {
		if e.clean = step.Seq; e.Now != nil {
			e.since = e.Now()
		}
		return plans.Done(), nil
	}
	return plans.Stop(reasons.ChecksFailed, c.why), nil
}
