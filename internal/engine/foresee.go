package engine

import (
	"context"
	"sync"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// foreseen is what the looks at the wave after the one that is handed over have seen: one look for each ordinal.
type foreseen struct {
	reserve plans.Step // of that wave
	since   time.Time  // when the looks began
	lock    sync.Mutex
	parts   []plans.Observation
}

// foresee reads what the wave after the one of a step will be looked at for, while that one is handed over. It decides
// nothing: the looks that follow find the answers among the recent ones, or read anew. Only its first write may be sent
// together with Grow (foretold).
func (e *Engine) foresee(ctx context.Context, step plans.Step) {
	if e.Beside == nil || !step.Op.GivesUp() || len(e.plan.Moved()) == 0 || e.journal == nil || e.journal.Paused {
		return
	}
	for seq := step.Seq + 1; ; seq++ {
		next, more := e.plan.Step(e.journal.Leg, seq)
		switch {
		case !more || next.Op.Closes():
			return
		case next.Op.TakesOver() && next.Ordinals != step.Ordinals:
			seen := &foreseen{reserve: next}
			if e.Now != nil {
				seen.since = e.Now()
			}
			e.preparation.seen = seen
			for o := range next.Ordinals.All() { // side by side: a wave of three takes no longer than a wave of one
				m := plans.StepContext{Step: next, Stamp: plans.Stamp{Plan: e.plan.ID, Epoch: e.epoch, Seq: e.journal.Begun}}
				m.Ordinals = plans.Slice{Start: o, Replicas: 1}
				e.Beside(func() { seen.look(ctx, e, m) })
			}
			return
		}
	}
}

// look looks at one ordinal. It does not write.
func (f *foreseen) look(ctx context.Context, e *Engine, m plans.StepContext) {
	var ignored error
	defer plans.RecoverPanic(&ignored)
	aside := &clusters.ReadCache{}
	aside.Clear()
	through := aside.Clients(e.plan, e.on)
	look := storage.Prepare(e.plan, through)
	if !storage.Prepares(e.plan) {
		look = storage.Departing(e.plan, through)
	}
	if observed, err := look(ctx, m); err == nil {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.parts = append(f.parts, observed)
	}
}

// foretold returns the first write that prepares the wave after that of a Grow, if it was foreseen a moment ago. Its
// looks were made BEFORE the intent of Grow is written, which also names that wave, and finds a journal that no other
// process has changed (S9, S10).
func (e *Engine) foretold(grow plans.Step) (made plans.Observation) {
	f := e.preparation.seen
	if f == nil || !grow.Op.Enters() {
		return made
	}
	e.preparation.seen = nil
	next, may := e.following(grow)
	if !may || next != f.reserve || e.Now != nil && !clusters.Within(clusters.FreshFor, f.since, e.Now()) {
		return made
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if s := plans.Together(f.parts); s.Standing == plans.Before && len(f.parts) == int(next.Ordinals.Replicas) {
		made = s
	}
	return made
}

// sendAlso sends a write that was foretold, right after the one of Grow.
func (e *Engine) sendAlso(ctx context.Context, grow plans.Step, made plans.Observation) {
	next, may := e.following(grow)
	if made.Write == nil || !may || e.journal.Prepared == nil || *e.journal.Prepared != next.Ordinals {
		return
	}
	e.besides = &Progress{Kind: Wrote, Step: next, Reason: made.Reason}
	e.preparation.send(ctx, e.Beside, made.Write)
}
