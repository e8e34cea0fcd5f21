package engine

import (
	"context"
	"slices"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Unrehearsed is a step whose writes cannot be tried before the move begins, and why.
type Unrehearsed struct {
	Step plans.Step
	Why  string
	// Held reports that a stored plan would not go on from there by itself.
	Held bool
}

// Rehearse sends every write that can be sent before the first ordinal leaves: those for the whole plan, and those of
// the first wave up to the one that scales the source down. The clients of the engine must send dry runs only, and show
// the answers to later reads (clusters.Rehearsal): each look then sees the step as done. The application is not asked,
// since that is no dry run, and what waits for a controller is left out. With a command, it begins where the stored plan
// is, and ends at the first step that waits: the next ones need what that one does. CheckWave, if set, is asked before the
// first wave then.
func (e *Engine) Rehearse(ctx context.Context, w *plans.Command) (left []Unrehearsed, err error) {
	r := rehearsal{Engine: e, stored: w != nil}
	if err := r.opens(ctx, w); err != nil {
		return nil, err
	}
	j := e.journal
	for seq := j.Done + 1; w == nil || len(left) == 0; seq++ {
		step, more := e.plan.Step(j.Leg, seq)
		if !more || step.Op.Frees() {
			return left, nil
		}
		if step.Op.Gated() {
			continue
		}
		why, err := r.step(ctx, step)
		if err == nil && why.Reason == "" && step.Op.Tightens() {
			if next, may := e.preparation.following(step); may {
				j.Prepared = &next.Ordinals
				step = next
				why, err = r.try(ctx, step, func(bool) (plans.Observation, error) { return e.preparation.look(ctx, e.preparation.of(next)) })
			}
		}
		if err != nil {
			return left, err
		}
		if why.Reason != "" {
			left = append(left, Unrehearsed{step, why.Reason, w != nil && why.holds()})
		}
	}
	return left, nil
}

// rehearsal sends the writes of steps as dry runs.
type rehearsal struct {
	*Engine

	stored bool // the plan is stored, and the journal is its own
}

// opens takes the journal of the stored plan, as it is after a command, or that of a plan that has not begun.
func (e *rehearsal) opens(ctx context.Context, w *plans.Command) (err error) {
	e.epoch, e.journal = 1, journal.New(e.plan)
	if w == nil {
		return nil
	}
	if err := e.Accept(ctx, *w, nil); err != nil {
		return err
	}
	e.journal, _, err = e.store.Journal(ctx, e.plan)
	return err
}

// step asks the checks of a step, and tries its writes.
func (e *rehearsal) step(ctx context.Context, step plans.Step) (waits, error) {
	unfit, why, err := e.asked(ctx, step)
	if err != nil || why.Reason != "" {
		return why, err
	}
	return e.try(ctx, step, func(began bool) (plans.Observation, error) {
		m := e.observer.moment(e.journal, step, began)
		m.Unfit = unfit
		return e.look(ctx, m)
	})
}

// waits is what a step waits for. Its Reason is "" if it waits for nothing.
type waits plans.Observation

// blocked is what a step waits for at which the plan would be blocked.
func blocked(id reasons.ID, reason string) waits {
	return waits(plans.Stop(id, "the plan would be blocked: "+reason))
}

// holds reports whether the wait is for the user. Any other one may end by itself.
func (s waits) holds() bool {
	return s.Standing == plans.Conflict || slices.Contains([]reasons.ID{reasons.CopyDiffers, reasons.TemplateDiffers, reasons.OrdinalDown}, s.ID)
}

// asked returns what the checks before a wave find: what bars one that serves, and what would block the plan in any case.
func (e *rehearsal) asked(ctx context.Context, step plans.Step) (*plans.Unfit, waits, error) {
	j := e.journal
	if !e.stored || e.CheckWave == nil || !step.Op.Tightens() || step.Seq <= j.Begun {
		return nil, waits{}, nil
	}
	if j.Unsure(step) {
		e.observer.reads.Clear()
		if serves, err := e.observer.world.Serves(ctx, step); err != nil || !serves {
			return nil, waits{}, err
		}
	}
	answer, err := e.CheckWave(ctx, j, step.Ordinals)
	if err != nil || answer.Why == "" {
		return answer.Unfit, waits{}, err
	}
	return nil, blocked(reasons.ChecksFailed, answer.Why), nil
}

// look looks at a step. Before a move begins, what its first wave waits for has nothing to do with its budgets.
func (e *rehearsal) look(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	s, err := e.observer.look(ctx, m)
	if err == nil && !e.stored && m.Op.Tightens() && s.Standing == plans.During {
		return e.observer.world.Tighten(ctx, m)
	}
	return s, err
}

// try tries the writes of a step, and returns what it waits for. A refused write ends the step: its answer
// is with the clients.
func (e *rehearsal) try(ctx context.Context, step plans.Step, look func(began bool) (plans.Observation, error)) (waits, error) {
	var tried []string
	for {
		observed, err := look(len(tried) > 0 || step.Seq <= e.journal.Begun)
		switch {
		case err != nil:
			return waits{}, err
		case observed.Standing == plans.After, observed.Standing == plans.Before && slices.Contains(tried, observed.Reason): // no effect
			return waits{}, nil
		case observed.Standing == plans.Conflict:
			return blocked(observed.ID, observed.Reason), nil
		case observed.Standing != plans.Before:
			return waits(observed), nil
		}
		tried = append(tried, observed.Reason)
		if !step.Op.TakesOver() {
			e.journal.Begin(e.plan, step, observed.Undo)
		}
		if err := observed.Write(ctx); err != nil {
			return waits{}, nil //nolint:nilerr // the caller keeps what the servers have refused, for each object
		}
	}
}
