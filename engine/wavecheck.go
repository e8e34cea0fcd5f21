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
//
// While waves follow one another in less time than that, one check is about several of them: what it lists is the same
// for all. Only what it does not find is used for the later ones: an objection may be about one of them alone.
type waveCheck struct {
	about  plans.Slice  // the wave, and those after it that will go while the result is valid
	answer chan checked // nil while no check runs
	asked  time.Time
	clean  int // the Seq of the last Shrink whose check found nothing, and since when
	since  time.Time
	// free are the ordinals about which a check that began at that time found nothing, on the leg.
	free      plans.Slice
	freeSince time.Time
	leg       plans.Leg
	// paced is the Seq of the last Tighten, when it was reached, and how long after the one before.
	paced   int
	reached time.Time
	pace    time.Duration
}

const (
	// checkValidity is how long a result is valid.
	checkValidity = 5 * time.Second
	// maxAhead is how many waves one check is about at most. The checks of single ordinals cost requests for each.
	maxAhead = 8
)

type checked struct {
	why string // "" when nothing bars the wave
	err error
}

// barred returns an observation that stops a wave which must not go; otherwise it returns After.
func (e *Engine) barred(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	if step.Op == plans.Tighten {
		e.keepPace(step)
	}
	switch {
	case e.CheckWave == nil || began || e.foundAhead(step):
	case step.Op == plans.Tighten && (e.answer == nil || !e.about.Covers(step.Ordinals)):
		e.askChecks(ctx, e.soon(step))
	case step.Op == plans.Shrink && (e.clean != step.Seq || e.stale(e.since)):
		return e.hearChecks(ctx, step)
	}
	return plans.Done(), nil
}

// keepPace notes how fast waves follow one another.
func (e *Engine) keepPace(step plans.Step) {
	if e.Now == nil || e.paced == step.Seq {
		return
	}
	now := e.Now()
	e.pace = 0
	if e.paced > 0 && e.paced < step.Seq {
		e.pace = clusters.Elapsed(e.reached, now)
	}
	e.paced, e.reached = step.Seq, now
}

// soon returns the ordinals of a wave, and of those after it that will go while a result of now is valid.
func (e *Engine) soon(step plans.Step) plans.Slice {
	out, waves := step.Ordinals, 1
	if e.pace > 0 {
		waves = int(min(checkValidity/e.pace, maxAhead))
	}
	for seq := step.Seq + 1; waves > 1; seq++ {
		next, more := e.plan.Step(e.journal.Leg, seq)
		if !more || next.Op.Closes() {
			break
		}
		if next.Op == plans.Tighten {
			out = out.Join(next.Ordinals)
			waves--
		}
	}
	return out
}

// foundAhead reports whether the check of an earlier wave found nothing about this one either, and is still valid.
func (e *Engine) foundAhead(step plans.Step) bool {
	return (step.Op == plans.Tighten || step.Op == plans.Shrink) && e.leg == e.journal.Leg && e.free.Covers(step.Ordinals) && !e.stale(e.freeSince)
}

// stale reports whether a result is too old. Without a clock every result is.
func (e *Engine) stale(since time.Time) bool {
	return e.Now == nil || clusters.Elapsed(since, e.Now()) > checkValidity
}

func (e *Engine) askChecks(ctx context.Context, about plans.Slice) {
	answer, j := make(chan checked, 1), *e.journal
	e.about, e.answer = about, answer
	if e.Now != nil {
		e.asked = e.Now()
	}
	go func() {
		var c checked
		func() {
			defer plans.RecoverPanic(&c.err)
			c.why, c.err = e.CheckWave(ctx, &j, about)
		}()
		answer <- c
	}()
}

// hearChecks waits for the result. It starts the check again BEFORE that if the last start is too long ago, and AFTER
// that for the wave alone if a check of several found something. The result of a check started here counts as new,
// however long the check takes.
func (e *Engine) hearChecks(ctx context.Context, step plans.Step) (plans.Observation, error) {
	if e.answer == nil || !e.about.Covers(step.Ordinals) || e.stale(e.asked) {
		e.askChecks(ctx, e.soon(step))
	}
	c, err := e.heard(ctx)
	if err == nil && (c.err != nil || c.why != "") && e.about != step.Ordinals {
		e.askChecks(ctx, step.Ordinals)
		c, err = e.heard(ctx)
	}
	switch {
	case err != nil:
		return plans.Observation{}, err
	case c.err != nil:
		return plans.Observation{}, c.err
	case c.why != "":
		return plans.Stop(reasons.ChecksFailed, c.why), nil
	}
	e.free, e.freeSince, e.leg = e.about, e.asked, e.journal.Leg
	if e.clean = step.Seq; e.Now != nil {
		e.since = e.Now()
	}
	return plans.Done(), nil
}

// heard waits for the result of the check that runs.
func (e *Engine) heard(ctx context.Context) (checked, error) {
	select {
	case c := <-e.answer:
		e.answer = nil
		return c, nil
	case <-ctx.Done():
		return checked{}, ctx.Err()
	}
}
