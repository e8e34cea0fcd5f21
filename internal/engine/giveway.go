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

	look    plans.Look
	at      func(j *journal.Journal, step plans.Step, began bool) plans.StepContext
	refused placeholder.Refusals
	clear   func(context.Context) error // takes all of them away
	still   standstill
}

// turn sends what takes placeholders away, if any is in the way. Nothing else waits for it: what cannot be read or deleted is
// left to the next pass, and after a few refusals alone.
func (y *yielding) turn(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	if !y.plan.Placeholder.Used() {
		return Progress{}, false, nil
	}
	observed, err := y.look(ctx, y.at(y.journal, step, began))
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
