package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// foresee reads what the wave after the one of a step will be looked at for, while that one is handed over. It decides
// nothing, and its result is dropped: the looks that follow find the answers among the recent ones, or read anew.
func (e *Engine) foresee(ctx context.Context, step plans.Step) {
	if e.Beside == nil || step.Op != plans.Release || len(e.plan.Moved()) == 0 || e.journal == nil || e.journal.Paused {
		return
	}
	for seq := step.Seq + 1; ; seq++ {
		next, more := e.plan.Step(e.journal.Leg, seq)
		switch {
		case !more || next.Op.Closes():
			return
		case next.Op == plans.Reserve && next.Ordinals != step.Ordinals:
			for o := range next.Ordinals.All() { // side by side: a wave of three takes no longer than a wave of one
				m := plans.StepContext{Step: next, Stamp: plans.Stamp{Plan: e.plan.ID, Epoch: e.epoch, Seq: e.journal.Begun}}
				m.Ordinals = plans.Slice{Start: o, Replicas: 1}
				e.Beside(func() { e.foreseen(ctx, m) })
			}
			return
		}
	}
}

// foreseen makes a look read what it needs. The look does not write.
func (e *Engine) foreseen(ctx context.Context, m plans.StepContext) {
	var ignored error
	defer plans.RecoverPanic(&ignored)
	aside := &clusters.ReadCache{}
	aside.Clear()
	through := aside.Clients(e.plan, e.on)
	look := storage.Prepare(e.plan, through)
	if e.plan.OneCluster() {
		look = storage.Departing(e.plan, through)
	}
	_, _ = look(ctx, m)
}
