package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Between two clusters, the volumes of a wave are made on the side that will receive it while the wave is still up:
// while the wave before it comes up there, while the budgets are tightened for it, or at the latest before it leaves. No
// claim can have them before it has left (S20). Then its places are taken there, where the plan wants that. A volume that the other cluster refuses, or that its binder does not see,
// keeps its ordinal up, and so does a claim that is refused when it is tried (S17).

// preparation prepares a wave before it leaves. It reads through the cache of the steps.
type preparation struct {
	*memory

	look    plans.Look
	places  placeholder.Steps
	at      func(j *journal.Journal, step plans.Step, began bool) plans.StepContext
	awaited int        // the Seq of the Reserve for which a wave that could leave has waited
	lacking plans.Step // the Reserve of the wave whose places were last found not to be there
}

// preparing returns the look that prepares a wave: its volumes first, since where they can be reached decides where its
// places are.
func preparing(at placeholder.Steps) plans.Look {
	return sets.InTurn(storage.Prepare(at.Plan, at.On), at.Prepare)
}

// placing returns the looks of the placeholders that this process makes.
func placing(e *memory, on clusters.Clusters, now func() time.Time) placeholder.Steps {
	return placeholder.Steps{Pair: clusters.Pair{Plan: e.plan, On: on}, Now: now, Without: &placeholder.Without{}, Anchors: &placeholder.Anchors{}, Crowded: &placeholder.Crowded{}, Overtaken: func(ctx context.Context) bool {
		now, _, err := e.store.Journal(ctx, e.plan)
		return err == nil && now.Epoch != e.epoch
	}}
}

// preparable reports whether anything is done for a wave before it leaves.
func preparable(p *plans.Plan) bool { return storage.Prepares(p) || p.Placeholder.Used() }

// following returns the Reserve of the wave that may be prepared during a step, and reports whether there is one: the
// wave of the step, before it leaves, or the wave after it, once it has been added to its new side. A wave before which
// the plan is about to pause, or the run to end, is not prepared.
func (e *preparation) following(step plans.Step) (plans.Step, bool) {
	j := e.journal
	if !step.Op.Tightens() && !step.Op.Leaves() && !step.Op.Enters() || !preparable(e.plan) || j.Paused || e.finishing || j.Unsure(step) {
		return plans.Step{}, false
	}
	for seq := step.Seq + 1; ; seq++ {
		next, more := e.plan.Step(j.Leg, seq)
		switch {
		case !more || next.Op.Closes() || j.PauseDue(next):
			return plans.Step{}, false
		case next.Op.TakesOver():
			return next, true
		}
	}
}

// of returns the context of a look at a wave that has not left.
func (e *preparation) of(next plans.Step) plans.StepContext {
	m := e.at(e.journal, next, false)
	m.Flight, m.Readopt = nil, false
	m.Stamp.Seq = e.journal.Begun // a later one would be ahead of the journal
	return m
}

// prepared returns how the preparation of a wave stands that is about to leave: After if there is nothing to prepare. A
// conflict counts only if it is seen twice, as in see.
func (e *Engine) prepared(ctx context.Context, step plans.Step, began bool) (plans.Observation, plans.Step, error) {
	next, may := e.preparation.following(step)
	look := e.preparation.look
	if !may {
		if next, may = e.preparation.returns(step); !may {
			return plans.Done(), next, nil
		}
		look = e.preparation.places.Prepare
	}
	e.ahead.wait() // what is still being sent would be sent again
	observed, err := look(ctx, e.preparation.of(next))
	if err == nil && observed.Standing == plans.Conflict {
		e.Recent.Forget()
		if _, err := e.observer.lookAt(ctx, step, began); err != nil { // a wait depends on its reads too
			return plans.Observation{}, next, err
		}
		observed, err = look(ctx, e.preparation.of(next))
	}
	if observed.ID == reasons.PlaceNotReady {
		e.preparation.lacking = next
	}
	return observed, next, err
}

// returns returns the Reserve of a wave that was under way when the plan was turned, and that would leave now. It was found on
// the side that it leaves: what serves of it needs its place like any other (S18). What else is prepared may be there already.
func (e *preparation) returns(step plans.Step) (plans.Step, bool) {
	if !step.Op.Leaves() || !e.plan.Placeholder.Used() || !e.journal.Unsure(step) {
		return plans.Step{}, false
	}
	return e.reserve(step)
}

// reserve returns the Reserve of the wave of a step that has not left.
func (e *preparation) reserve(step plans.Step) (plans.Step, bool) {
	for seq := step.Seq + 1; ; seq++ {
		if next, more := e.plan.Step(e.journal.Leg, seq); !more || next.Op.TakesOver() {
			return next, more
		}
	}
}

// admits tries the claims of a wave that is prepared and would leave now. They are made when it has left.
func (e *Engine) admits(ctx context.Context, step plans.Step) error {
	if !step.Op.Leaves() {
		return nil
	}
	if err := e.preparation.places.Removable(ctx, e.observer.moment(e.journal, step, true)); err != nil {
		return err
	}
	next, may := e.preparation.following(step)
	if !may {
		return nil
	}
	return storage.Admitted(ctx, e.plan, e.observer.world.On, e.preparation.of(next))
}

// place makes the places of a wave that may follow the one before it at once, and returns the progress of that. Without one,
// it returns how they stand; After also where it is the step of the wave that has to say what is wrong.
func (e *Engine) place(ctx context.Context, step plans.Step) (Progress, plans.Observation, error) {
	if !e.plan.Placeholder.Used() {
		return Progress{}, plans.Done(), nil
	}
	observed, next, err := e.prepared(ctx, step, false)
	switch {
	case err != nil:
		return Progress{Step: step}, observed, err
	case observed.Standing == plans.Before:
		p, err := e.prepare(ctx, next, observed)
		return p, observed, err
	case observed.Standing == plans.During:
		return Progress{}, observed, nil
	}
	return Progress{}, plans.Done(), nil
}

// unprepared returns the result of a pass at a wave that could leave, and is not prepared.
func (e *Engine) unprepared(ctx context.Context, step, next plans.Step, observed plans.Observation, err error) (Progress, error) {
	switch {
	case err != nil:
		return Progress{Step: step}, err
	case observed.Standing == plans.Before:
		return e.prepare(ctx, next, observed)
	case observed.Standing == plans.Conflict:
		return e.block(ctx, step, observed.ID, observed.Reason)
	}
	e.preparation.awaited = next.Seq
	return e.rest(ctx, Progress{Kind: Waiting, Step: step, ID: observed.ID, Reason: observed.Reason, Again: observed.Again, Unreached: observed.Unreached})
}

// leaves reports whether a step that is due must find its wave prepared: a wave that would leave now, one whose budgets
// were opened again because it was not prepared, and one whose places are taken first. To tighten them for another few
// seconds would bring nothing.
func (e *Engine) leaves(step plans.Step, observed plans.Observation) bool {
	next, may := e.preparation.following(step)
	first := step.Op.Tightens() && may && placesFirst(e.plan, e.journal, step)
	if observed.Standing == plans.After { // the budgets are still those of the wave before
		return first
	}
	if observed.Standing != plans.Before {
		return false
	}
	return step.Op.Leaves() && observed.Undo.Flight != nil || first || step.Op.Tightens() && may && e.preparation.awaited == next.Seq
}

// placesFirst reports whether the places of a wave are taken before anything else is done or asked for it: a place may take
// minutes. Budgets that are tightened before would be opened and tightened again, and what the checks have answered before
// would be too old (S19).
func placesFirst(p *plans.Plan, j *journal.Journal, step plans.Step) bool {
	return p.Placeholder.Used() && begins(j, step)
}

// prepare sends the write that a wave needs before it leaves. The wave is in the journal before that.
func (e *Engine) prepare(ctx context.Context, next plans.Step, observed plans.Observation) (Progress, error) {
	if e.journal.Prepared == nil || *e.journal.Prepared != next.Ordinals {
		e.journal.Prepared = &next.Ordinals
		if err := e.save(ctx); err != nil {
			return Progress{Step: next}, writes.IgnoreAnswers(err)
		}
	} else if same, err := e.unmoved(ctx); err != nil || !same {
		return Progress{Step: next}, err
	}
	e.answered = observed.Write(ctx)
	return Progress{Kind: Wrote, Step: next, Reason: observed.Reason}, writes.IgnoreAnswers(e.answered)
}
