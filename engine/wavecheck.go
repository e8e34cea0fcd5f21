package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// waveCheck is the CheckWave of the wave under way. It is asked when Tighten begins, beside
// what Tighten waits for, and its answer is waited for before anything is taken down. An answer is good
// for a few seconds: a wave may wait for hours for a pod or for its turn, and whoever has
// something against it by then is asked again.
type waveCheck struct {
	wave   plans.Slice
	answer chan checked // nil when nothing is asked
	asked  time.Time
	clean  int // the Shrink of the last wave of which there was nothing to say, and
	since  time.Time
}

// checkValidity is for how long an answer is good.
const checkValidity = 5 * time.Second

type checked struct {
	why string // "" when nothing bars it
	err error
}

// barred stops a wave that must not go.
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

// stale says whether something is too old; without a clock it is.
func (e *Engine) stale(since time.Time) bool {
	return e.Now == nil || records.Elapsed(since, e.Now()) > checkValidity
}

func (e *Engine) askChecks(ctx context.Context, wave plans.Slice) {
	answer, j := make(chan checked, 1), *e.journal // the engine goes on with its own
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

// hearChecks waits for the answer, and asks again BEFORE that if it was asked for too long ago. What is asked
// here is new, however long the answer takes.
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
	return plans.Stop(c.why), nil
}
