package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// The volumes of all ordinals are protected one after the other, and nothing of one depends on another. So many of them
// are looked at BEFORE the journal is read, and written after it: each write is conditional on its volume as it was
// looked at, and a later process has stamped all these volumes before it does anything else (S9).

// minBatch is from how many steps on their claims are read with one list.
const minBatch = 4

// alike looks at the steps after one of a batch, whose intents are written together, and returns those whose write is
// due. It ends with the first that has none, which gets a look of its own.
func (e *Engine) alike(ctx context.Context, step plans.Step) map[int]plans.Observation {
	if step.Op.Closes() || step.Op.Batch() == 1 {
		return nil
	}
	out := map[int]plans.Observation{}
	if after, more := e.plan.Step(e.journal.Leg, step.Seq+minBatch); more && after.Op == step.Op {
		e.Recent.ReadAll(ctx, e.on[step.From], corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), e.plan.On(step.From).Namespace)
	}
	for seq := step.Seq + 1; seq < step.Seq+step.Op.Batch(); seq++ {
		next, more := e.plan.Step(e.journal.Leg, seq)
		if !more || next.Op != step.Op {
			break
		}
		observed, err := e.look(ctx, e.moment(e.journal, next, true))
		if err != nil || observed.Standing != plans.Before || !e.journal.Recorded(observed.Undo) {
			break
		}
		out[seq] = observed
	}
	return out
}

// next sends the write of a step that was looked at together with the one before it, and reports whether there is one.
func (e *Engine) next(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	observed, due := e.ready[step.Seq]
	if !due || !began {
		return Progress{}, false, nil
	}
	delete(e.ready, step.Seq)
	p, err := e.send(ctx, step, observed)
	return p, true, err
}
