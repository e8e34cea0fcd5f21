package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// yielding takes the placeholders away that may be in the way, at any step of a wave (S28). None of its fields matters after a
// crash: the next process finds them again.
type yielding struct {
	*memory

	look    plans.Look // finds those that may be in the way
	yield   plans.Look // finds those of the wave, when its pods have gone
	freed   int        // the Seq of the Vacate at which that was sent
	at      func(j *journal.Journal, step plans.Step, began bool) plans.StepContext
	refused placeholder.Refusals
	clear   func(context.Context) error // takes all of them away
	still   standstill
}

// turn tidies before a step is looked at. While its wave is away, that waits until the step waits (meanwhile): ordinals are down
// as long as it takes. Only their own places are given free then, as soon as their pods are gone.
func (y *yielding) turn(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	switch {
	case step.Op.Frees() && y.freed != step.Seq:
		p, sent, err := y.send(ctx, step, began, y.yield)
		if sent && p.Kind == Wrote && err == nil && y.answered == nil {
			y.freed = step.Seq // Grow looks once more
		}
		return p, sent, err
	case hurries(step):
		return Progress{}, false, nil
	}
	return y.send(ctx, step, began, y.look)
}

// meanwhile tidies while a wave that is away waits for something.
func (y *yielding) meanwhile(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	if !hurries(step) {
		return Progress{}, false, nil
	}
	return y.send(ctx, step, began, y.look)
}

// hurries reports whether ordinals are down as long as a step takes.
func hurries(step plans.Step) bool {
	return step.Op.Frees() || step.Op.GivesUp() || step.Op.TakesOver() || step.Op.Enters()
}

// send sends what a look takes away, if there is any. It needs no intent in the journal. Nothing else waits for it: what cannot
// be read or deleted is left to the next pass, and after a few refusals alone.
func (y *yielding) send(ctx context.Context, step plans.Step, began bool, look plans.Look) (Progress, bool, error) {
	if !y.plan.Placeholder.Used() {
		return Progress{}, false, nil
	}
	observed, err := look(ctx, y.at(y.journal, step, began))
	if observed = y.refused.Given(observed); err != nil || observed.Standing != plans.Before {
		return Progress{}, false, nil //nolint:nilerr // the look at the step reports what cannot be read
	}
	if same, err := y.unmoved(ctx); err != nil || !same {
		return movedOn(step), true, err
	}
	y.answered = observed.Write(ctx)
	return Progress{Kind: Wrote, Step: step, Reason: observed.Reason}, true, writes.IgnoreAnswers(y.answered)
}

// keepPlaces is how long places are kept while the plan waits for something else. They are taken again before the wave leaves.
const keepPlaces = 5 * time.Minute

// standstill is a wait that keeps places from others, and since when.
type standstill struct {
	step  plans.Step
	since time.Time
	freed bool
}

// wait takes the placeholders away during a wait that is long. A wave that waits for its own places keeps them, as does one
// that is about to stop: it may still go back.
func (y *yielding) wait(ctx context.Context, p Progress) error {
	if !y.plan.Placeholder.Used() || y.Now == nil {
		return nil
	}
	switch now := y.Now(); {
	case p.ID == reasons.PlaceNotReady || p.Step.Op.Frees():
		y.still = standstill{}
	case y.still.since.IsZero() || y.still.step != p.Step:
		y.still = standstill{step: p.Step, since: now}
	case !y.still.freed && now.Sub(y.still.since) > keepPlaces:
		y.still.freed = true
		return y.clear(ctx)
	}
	return nil
}
