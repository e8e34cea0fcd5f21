package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Between two clusters, the volumes and claims of a wave can be made on the side that will receive it while the wave
// is still up: while the wave before it comes up there, while the budgets are tightened for it, or at the latest just
// before it leaves. Reserve and Claim then find them, and nothing of this delays an ordinal that is down. It is best
// effort: whatever is in the way is left to the steps of the wave itself, and Shrink looks at everything again before
// the first ordinal leaves (S17).

// preparation prepares the next wave.
type preparation struct {
	// aside is the cache for its reads. It is separate, so that what the step waits for is not forgotten.
	aside *clusters.ReadCache
	look  plans.Look
	done  int // the Seq of the Reserve for which nothing is left to do
}

func newPreparation(p *plans.Plan, on clusters.Clusters) *preparation {
	aside := &clusters.ReadCache{}
	return &preparation{aside: aside, look: storage.Prepare(p, aside.Clients(p, on))}
}

// following returns the Reserve of the wave that may be prepared during a step, and reports whether there is one: the
// wave of the step, before it leaves, or the wave after it, once it has been added to its new side. A wave before which
// the plan is about to pause is not prepared.
func (e *Engine) following(step plans.Step) (plans.Step, bool) {
	j := e.journal
	if step.Op != plans.Tighten && step.Op != plans.Shrink && step.Op != plans.Grow || e.plan.OneCluster() || len(e.plan.Moved()) == 0 || j.Paused || j.Reversed(step) {
		return plans.Step{}, false
	}
	for seq := step.Seq + 1; ; seq++ {
		next, more := e.plan.Step(j.Leg, seq)
		switch {
		case !more || next.Op.Closes() || j.PauseDue(next):
			return plans.Step{}, false
		case next.Op == plans.Reserve:
			return next, true
		}
	}
}

// prepare sends at most one write that prepares the next wave, and reports whether it did. The order must hold: the
// wave is in the journal, with the intent of Tighten or Grow, BEFORE anything of it is made (S10), and the journal is unchanged
// after the look (S9).
func (e *Engine) prepare(ctx context.Context, step plans.Step) (Progress, bool) {
	next, may := e.following(step)
	p := e.preparation
	if !may || p.done == next.Seq || e.journal.Prepared == nil || *e.journal.Prepared != next.Ordinals {
		return Progress{}, false
	}
	m := e.moment(e.journal, next, false)
	m.Flight, m.Readopt = nil, false
	m.Stamp.Seq = e.journal.Begun // a later one would be ahead of the journal
	p.aside.Clear()
	observed, err := p.look(ctx, m)
	if err != nil || observed.Standing != plans.Before {
		p.done = next.Seq
		return Progress{}, false
	}
	if same, err := e.unmoved(ctx); err != nil || !same {
		return Progress{}, false
	}
	if err := observed.Write(ctx); err != nil {
		p.done = next.Seq // the steps of the wave report it
		return Progress{}, false
	}
	return Progress{Kind: Wrote, Step: next, Reason: observed.Reason}, true
}
