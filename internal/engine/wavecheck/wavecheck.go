// Package wavecheck checks each wave before it goes, in parallel with what the wave waits for, and several waves with one
// check while they follow one another quickly.
package wavecheck

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

const (
	// Validity is how long a result is valid: a wave may wait for hours for a pod or a permit, and new objections may
	// arise meanwhile.
	Validity = 5 * time.Second
	// maxAhead is how many waves one check is about at most. The checks of single ordinals cost requests for each.
	maxAhead = 16
)

// Ask returns what bars the ordinals.
type Ask func(context.Context, plans.Slice) (Answer, error)

// Answer is what bars a wave. The zero value bars none.
type Answer struct {
	// Why is what bars the wave in any case, or "".
	Why string
	// Unfit is what bars it while one of its ordinals serves. Only the look that takes the wave down knows that.
	Unfit *plans.Unfit
}

func (a Answer) bars() bool { return a.Why != "" || a.Unfit != nil }

// Wave is a wave that is about to go, in the step that it has reached.
type Wave struct {
	plans.Step
	Leg plans.Leg
	// Next returns the step with a Seq on the leg, and whether there is one.
	Next func(seq int) (plans.Step, bool)
}

// Checks are the checks of one run. A check starts when Tighten begins, and its result is awaited before anything is
// scaled down. Only what a check of several waves does not find is used for the later ones: an objection may be about
// one of them alone. The zero value has checked nothing.
type Checks struct {
	about  plans.Slice // the wave, and those after it that will go while the result is valid
	answer chan result // nil while no check runs
	asked  time.Time
	clean  int // the Seq of the last Shrink whose check barred it in no case, and since when
	since  time.Time
	unfit  *plans.Unfit // of that Shrink
	// free are the ordinals about which a check that began at that time found nothing, on the leg.
	free      plans.Slice
	freeSince time.Time
	leg       plans.Leg
	// paced is the Seq of the last Tighten, when it was reached, and how long after the one before.
	paced   int
	reached time.Time
	pace    time.Duration
}

type result struct {
	Answer
	err error
}

// Reached notes that a wave has reached a step. It tells how fast waves follow one another. now is nil without a clock:
// then no result is valid later.
func (c *Checks) Reached(step plans.Step, now func() time.Time) {
	if !step.Op.Tightens() || now == nil || c.paced == step.Seq {
		return
	}
	at := now()
	c.pace = 0
	if c.paced > 0 && c.paced < step.Seq {
		c.pace = clusters.Elapsed(c.reached, at)
	}
	c.paced, c.reached = step.Seq, at
}

// Passed notes that a check of these ordinals found nothing, which began at that time: that of the whole plan, before its
// first write.
func (c *Checks) Passed(about plans.Slice, leg plans.Leg, at time.Time) {
	c.free, c.freeSince, c.leg = about, at, leg
}

// Bars returns why a wave must not be scaled down, or "". At Tighten it only starts the check.
func (c *Checks) Bars(ctx context.Context, w Wave, now func() time.Time, ask Ask) (string, error) {
	due := w.Op.Tightens() && (c.answer == nil || !c.about.Covers(w.Ordinals)) ||
		w.Op.Leaves() && (c.clean != w.Seq || stale(c.since, now))
	if !due || c.leg == w.Leg && c.free.Covers(w.Ordinals) && !stale(c.freeSince, now) {
		return "", nil
	}
	if w.Op.Tightens() {
		c.start(ctx, c.soon(w), now, ask)
		return "", nil
	}
	return c.hear(ctx, w, now, ask)
}

// Unfit returns what bars the wave of a Shrink while one of its ordinals serves, or nil.
func (c *Checks) Unfit(s plans.Step) *plans.Unfit {
	if !s.Op.Leaves() || c.clean != s.Seq {
		return nil
	}
	return c.unfit
}

// soon returns the ordinals of a wave, and of those after it that will go while a result of now is valid.
func (c *Checks) soon(w Wave) plans.Slice {
	out, waves := w.Ordinals, 1
	if c.pace > 0 {
		waves = int(min(Validity/c.pace, maxAhead))
	}
	for seq := w.Seq + 1; waves > 1; seq++ {
		next, more := w.Next(seq)
		if !more || next.Op.Closes() {
			break
		}
		if next.Op.Tightens() {
			out = out.Join(next.Ordinals)
			waves--
		}
	}
	return out
}

// stale reports whether a result is too old. Without a clock every result is.
func stale(since time.Time, now func() time.Time) bool {
	return now == nil || clusters.Elapsed(since, now()) > Validity
}

func (c *Checks) start(ctx context.Context, about plans.Slice, now func() time.Time, ask Ask) {
	answer := make(chan result, 1)
	c.about, c.answer = about, answer
	if now != nil {
		c.asked = now()
	}
	go func() {
		var r result
		func() {
			defer plans.RecoverPanic(&r.err)
			r.Answer, r.err = ask(ctx, about)
		}()
		answer <- r
	}()
}

// hear waits for the result. It starts the check again BEFORE that if the last start is too long ago, and AFTER that for
// the wave alone if a check of several found something. The result of a check started here counts as new, however long
// the check takes.
func (c *Checks) hear(ctx context.Context, w Wave, now func() time.Time, ask Ask) (string, error) {
	if c.answer == nil || !c.about.Covers(w.Ordinals) || stale(c.asked, now) {
		c.start(ctx, c.soon(w), now, ask)
	}
	r, err := c.heard(ctx)
	if err == nil && (r.err != nil || r.bars()) && c.about != w.Ordinals {
		c.start(ctx, w.Ordinals, now, ask)
		r, err = c.heard(ctx)
	}
	switch {
	case err != nil:
		return "", err
	case r.err != nil:
		return "", r.err
	case r.Why != "":
		return r.Why, nil
	}
	if c.unfit = r.Unfit; c.unfit == nil {
		c.free, c.freeSince, c.leg = c.about, c.asked, w.Leg
	}
	if c.clean = w.Seq; now != nil {
		c.since = now()
	}
	return "", nil
}

// heard waits for the result of the check that runs.
func (c *Checks) heard(ctx context.Context) (result, error) {
	select {
	case r := <-c.answer:
		c.answer = nil
		return r, nil
	case <-ctx.Done():
		return result{}, ctx.Err()
	}
}
