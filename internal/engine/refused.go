package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A refusal is no decision about the plan: it says what an API server thinks of one request now. What may pass by itself
// is waited for (internal/engine/refusals). After that time the plan is blocked with nothing in flight. With an ordinal in flight
// it is not: a process that stops would leave the ordinal down for longer than the refusal lasts.

// refused handles a refusal that has lasted for long enough to be believed. It returns a Progress that is Blocked, or
// none if the request is to be tried further.
func (r *run) refused(ctx context.Context, p Progress, why error) (Progress, error) {
	id := answers.Reason(why)
	if answers.Of(why) != answers.Passing {
		return r.Block(ctx, p.Step, id, why.Error())
	}
	if err := r.recall(ctx); err != nil {
		return Progress{}, err
	}
	if r.journal.Epoch != r.epoch || r.belated {
		return Progress{}, nil // the next pass reports that another process has the plan
	}
	if step, in := r.aloft(); in {
		told, err := r.overdue(ctx, Progress{Kind: Waiting, Step: step, ID: id, Reason: why.Error()}, r.StepTimeout)
		if r.journal == nil {
			return Progress{}, writes.IgnoreAnswers(err)
		}
		r.belated, told.Left = true, r.journal.Left()
		r.Report(told, nil)
		return Progress{}, nil
	}
	r.ease(ctx)
	return r.Block(ctx, p.Step, id, why.Error()+" (refused for "+r.StepTimeout.String()+", --step-timeout; `resume` asks again, `abort` rolls back)")
}

// OrdinalsAway reports whether ordinals may be on neither side, as the journal tells it.
func OrdinalsAway(ctx context.Context, store *records.Store, p *plans.Plan) (bool, error) {
	j, _, err := store.Journal(ctx, p)
	if err != nil {
		return false, err
	}
	step, _, more := j.Next(p)
	return more && j.Wave(step).Away, nil
}
