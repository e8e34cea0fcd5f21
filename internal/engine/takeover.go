package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// TakeOver makes this engine the one that may write. The order must hold (S9): first the epoch in the
// journal; then its stamp on every object that an earlier process may be about to write, so that this write
// is rejected; only then, in Advance, a look and a decision. It is needed at every start, since no process
// can know whether the last one is dead or merely slow.
//
// direction sets the direction at the same moment: Abort aborts the plan, Finalize finalizes it. Move
// continues as the journal states.
func (e *Engine) TakeOver(ctx context.Context, direction plans.Direction) error {
	return e.Accept(ctx, plans.Command{Direction: direction, Assurance: e.Assurance}, nil)
}

// Accept takes the plan over for a request and records the request in the same write. still, if not nil, is
// called before that write and returns an error if the request no longer applies to the journal.
func (e *Engine) Accept(ctx context.Context, w plans.Command, still func(context.Context, *journal.Journal) error) error {
	return e.takeOver(ctx, func(now *journal.Journal) error {
		if still != nil {
			if err := still(ctx, now); err != nil {
				return err
			}
		}
		if err := requests.Accept(e.plan, now, w); err != nil {
			return err
		}
		e.requested(now, w)
		return nil
	})
}

// takeOver takes the plan over and changes the journal with depart in the same write.
func (e *Engine) takeOver(ctx context.Context, depart func(*journal.Journal) error) error {
	var j *journal.Journal
	err := e.store.Change(ctx, e.plan, func(now *journal.Journal) error {
		if err := e.fencing.rewound(ctx, now); err != nil {
			return err
		}
		now.Touched = e.fencing.touched(now)
		if e.Now != nil {
			now.Resume(e.Now(), e.Sign)
		}
		if err := depart(now); err != nil {
			return err
		}
		now.Epoch++
		j = now
		return nil
	})
	if err != nil {
		return err
	}
	if e.epoch > 0 {
		e.observer.void() // another process may have had the plan meanwhile
	}
	e.epoch, e.begun, e.passed, e.journal, e.notes = j.Epoch, j.Begun, 0, nil, nil
	e.batch.forget()
	e.ahead.forget()
	e.lacking = time.Time{}
	e.flies(j)
	if err := e.fencing.all(ctx, j); err != nil {
		return fmt.Errorf("taking plan %s over: %w", e.plan.Name, err)
	}
	return nil
}
