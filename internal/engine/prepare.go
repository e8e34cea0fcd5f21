package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Between two clusters, the volumes of a wave are made on the side that will receive it while the wave is still up:
// while the wave before it comes up there, while the budgets are tightened for it, or at the latest before it leaves. No
// claim can have them before it has left (S20). A volume that the other cluster refuses, or that its binder does not see,
// keeps its ordinal up, and so does a claim that is refused when it is tried (S17).

// preparation prepares waves.
type preparation struct {
	// look looks for what Shrink waits for, and reads through the cache of the steps. meanwhile looks during a step
	// that waits for something else, and reads through aside, so that what the step waits for is not forgotten.
	look, meanwhile plans.Look
	aside           *clusters.ReadCache
	left            int // the Seq of the Reserve whose wave is left to Shrink, or is prepared
	awaited         int // the Seq of the Reserve for which a wave that could leave has waited
	seen            *foreseen
	sending         sync.WaitGroup
	// busy reports that a write is being sent beside the engine, and failed that the last one has failed.
	busy, failed atomic.Bool
}

// send sends a write that nothing waits for beside the engine, which looks at its step meanwhile. It was due when the
// journal was last known to be unchanged: that it may arrive late is no other case than a process that dies while it
// sends (S9).
func (p *preparation) send(ctx context.Context, beside func(func()), write func(context.Context) error) {
	p.busy.Store(true)
	p.sending.Add(1)
	one := func() {
		defer p.sending.Done()
		var err error
		defer func() { p.failed.Store(err != nil); p.busy.Store(false) }()
		defer plans.RecoverPanic(&err)
		err = write(ctx)
	}
	if beside == nil {
		one()
		return
	}
	beside(one)
}

func newPreparation(p *plans.Plan, on, through clusters.Clusters) *preparation {
	aside := &clusters.ReadCache{}
	return &preparation{look: storage.Prepare(p, through), meanwhile: storage.Prepare(p, aside.Clients(p, on)), aside: aside}
}

// following returns the Reserve of the wave that may be prepared during a step, and reports whether there is one: the
// wave of the step, before it leaves, or the wave after it, once it has been added to its new side. A wave before which
// the plan is about to pause, or the run to end, is not prepared.
func (e *Engine) following(step plans.Step) (plans.Step, bool) {
	j := e.journal
	if !step.Op.Tightens() && !step.Op.Leaves() && !step.Op.Enters() || !storage.Prepares(e.plan) || j.Paused || e.finishing || j.Unsure(step) {
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

// ahead prepares a wave during the wait of a step. It sends at most one write, and reports whether it did. Whatever is
// in the way is left to Shrink, which reports it. The order must hold: the wave is in the journal, with the intent of
// Tighten or Grow, BEFORE anything of it is made (S10), and the journal is unchanged after the look (S9).
func (e *Engine) ahead(ctx context.Context, step plans.Step) (Progress, bool) {
	next, may := e.following(step)
	p := e.preparation
	if p.failed.Swap(false) {
		p.left = next.Seq
	}
	if !may || p.busy.Load() || p.left == next.Seq || e.journal.Prepared == nil || *e.journal.Prepared != next.Ordinals {
		return Progress{}, false
	}
	p.aside.Clear()
	observed, err := p.meanwhile(ctx, e.preparing(next))
	if err != nil || observed.Standing != plans.Before {
		p.left = next.Seq
		return Progress{}, false
	}
	if same, err := e.unmoved(ctx); err != nil || !same {
		return Progress{}, false
	}
	p.send(ctx, e.Beside, observed.Write)
	return Progress{Kind: Wrote, Step: next, Reason: observed.Reason}, true
}

// prepared returns how the preparation of a wave stands that is about to leave: After if there is nothing to prepare. A
// conflict counts only if it is seen twice, as in see.
func (e *Engine) prepared(ctx context.Context, step plans.Step, began bool) (plans.Observation, plans.Step, error) {
	next, may := e.following(step)
	if !may {
		return plans.Done(), next, nil
	}
	e.preparation.sending.Wait() // what is still being sent would be sent again
	observed, err := e.preparation.look(ctx, e.preparing(next))
	if err == nil && observed.Standing == plans.Conflict {
		e.Recent.Forget()
		if _, err := e.lookAt(ctx, step, began); err != nil { // a wait depends on its reads too
			return plans.Observation{}, next, err
		}
		observed, err = e.preparation.look(ctx, e.preparing(next))
	}
	return observed, next, err
}

// admits tries the claims of a wave that is prepared and would leave now. They are made when it has left.
func (e *Engine) admits(ctx context.Context, step plans.Step) error {
	next, may := e.following(step)
	if !step.Op.Leaves() || !may {
		return nil
	}
	return storage.Admitted(ctx, e.plan, e.world.On, e.preparing(next))
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
	return e.rest(ctx, Progress{Kind: Waiting, Step: step, ID: observed.ID, Reason: observed.Reason, Again: observed.Again})
}

// leaves reports whether a step that is due must find its wave prepared: a wave that would leave now, and one whose
// budgets were opened again because it was not prepared. To tighten them for another few seconds would bring nothing.
func (e *Engine) leaves(step plans.Step, observed plans.Observation) bool {
	if observed.Standing != plans.Before {
		return false
	}
	next, may := e.following(step)
	return step.Op.Leaves() && observed.Undo.Flight != nil || step.Op.Tightens() && may && e.preparation.awaited == next.Seq
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

// preparing returns the context of a look at a wave that has not left.
func (e *Engine) preparing(next plans.Step) plans.StepContext {
	m := e.moment(e.journal, next, false)
	m.Flight, m.Readopt = nil, false
	m.Stamp.Seq = e.journal.Begun // a later one would be ahead of the journal
	return m
}
