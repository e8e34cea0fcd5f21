package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The volumes of all ordinals are protected one after the other, and nothing of one depends on another. So many of them
// are looked at BEFORE the journal is read, and written after it: each write is conditional on its volume as it was
// looked at, and a later process has stamped all these volumes before it does anything else (S9).

// batch looks at several steps together. Without one, each step has a look of its own.
type batch struct {
	*memory

	on    clusters.Clusters
	look  func(ctx context.Context, step plans.Step, began bool) (plans.Observation, error)
	ready map[int]plans.Observation // the next writes, by Seq
}

// minBatch is from how many steps on their claims are read with one list.
const minBatch = 4

// lookAhead looks at the steps after one of a batch, whose intents are written together, and keeps those whose write is
// due. It ends with the first that has none, which gets a look of its own.
func (e *batch) lookAhead(ctx context.Context, step plans.Step) {
	if e == nil {
		return
	}
	e.ready = nil
	if step.Op.Closes() || step.Op.Batch() == 1 {
		return
	}
	e.ready = map[int]plans.Observation{}
	if after, more := e.plan.Step(e.journal.Leg, step.Seq+minBatch); more && after.Op == step.Op {
		e.Recent.ReadAll(ctx, e.on[step.From], corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), e.plan.On(step.From).Namespace)
	}
	for seq := step.Seq + 1; seq < step.Seq+step.Op.Batch(); seq++ {
		next, more := e.plan.Step(e.journal.Leg, seq)
		if !more || next.Op != step.Op {
			break
		}
		observed, err := e.look(ctx, next, true)
		if err != nil || observed.Standing != plans.Before || !e.journal.Recorded(observed.Undo) {
			break
		}
		e.ready[seq] = observed
	}
}

// take returns the write of a step that was looked at together with the one before it, and reports whether there is one.
func (e *batch) take(step plans.Step, began bool) (plans.Observation, bool) {
	if e == nil {
		return plans.Observation{}, false
	}
	observed, due := e.ready[step.Seq]
	if !due || !began {
		return plans.Observation{}, false
	}
	delete(e.ready, step.Seq)
	return observed, true
}

// forget drops what was looked at.
func (e *batch) forget() {
	if e != nil {
		e.ready = nil
	}
}
