package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
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
		if err := e.rewound(ctx, now); err != nil {
			return err
		}
		now.Touched = e.touched(now)
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
		e.void() // another process may have had the plan meanwhile
	}
	e.epoch, e.begun, e.passed, e.journal, e.notes = j.Epoch, j.Begun, 0, nil, nil
	e.batch.forget()
	e.ahead.forget()
	e.lacking = time.Time{}
	e.flies(j)
	stamp := plans.Stamp{Plan: e.plan.ID, Epoch: j.Epoch, Seq: j.Done}
	exposed, err := e.exposed(ctx, j)
	if err != nil {
		return fmt.Errorf("taking plan %s over: %w", e.plan.Name, err)
	}
	for _, x := range exposed {
		if err := e.fence(ctx, stamp, j, x); err != nil {
			return fmt.Errorf("taking plan %s over: %w", e.plan.Name, err)
		}
	}
	return nil
}

// exposed is an object that a late write may still reach.
type exposed struct {
	side   plans.Side
	object client.Object // only its name is set
	// known reports whether an object without our stamp is nevertheless the one the plan means. Other objects
	// are left unchanged: a stamp would make them ours.
	known func(client.Object) bool
}

// exposed lists the objects that any step may write, and those of the ordinals whose steps may have begun and
// are not known to be finished.
func (e *Engine) exposed(ctx context.Context, j *journal.Journal) ([]exposed, error) {
	p := e.plan
	uids := map[plans.Side][]types.UID{plans.Source: {j.Saved.Source(p)}, plans.Destination: {p.Seen.DestinationUID}}
	// Once every ordinal is in its final place, the last flight is over: no step would remove a stamp
	// from its objects again (S15).
	next, more := p.Step(j.Leg, j.Done+1)
	closing := !more || next.Op.Closes()
	var out []exposed
	for _, side := range plans.Sides() {
		ref := p.On(side)
		budget, existed := p.BudgetOn(side)
		out = append(out,
			exposed{side, &appsv1.StatefulSet{ObjectMeta: named(ref.Namespace, ref.Name)}, oneOf(uids[side])},
			exposed{side, &policyv1.PodDisruptionBudget{ObjectMeta: named(ref.Namespace, budget)}, func(client.Object) bool { return existed }})
		if j.Flight != nil && !closing {
			out = append(out, e.inFlight(j.Flight, side)...)
		}
	}
	if more && next.Op != plans.Thaw { // Unshare removes the stamp
		for _, s := range p.Shared {
			out = append(out, exposed{plans.Source, &corev1.PersistentVolume{ObjectMeta: named("", s.Volume)}, holds(s.Handle)})
		}
	}
	jobs, err := e.jobs(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, jobs...)
	for _, o := range j.Touched {
		vols, _, err := storage.Volumes(ctx, p, e.on, plans.Source, o)
		if err != nil {
			return nil, err
		}
		for _, v := range vols {
			out = append(out, exposed{plans.Source, &corev1.PersistentVolume{ObjectMeta: named("", v.Name)}, holds(v.Handle)})
		}
	}
	return out, nil
}

// jobs lists the Jobs of the gates on both sides.
func (e *Engine) jobs(ctx context.Context) ([]exposed, error) {
	var out []exposed
	for _, side := range plans.Sides() {
		all, err := gates.Jobs(ctx, e.plan, e.on[side], side)
		if err != nil {
			return nil, err
		}
		for _, j := range all {
			out = append(out, exposed{side, &batchv1.Job{ObjectMeta: named(j.Namespace, j.Name)}, func(client.Object) bool { return false }})
		}
	}
	return out, nil
}

// inFlight lists the claims and volumes of the current wave on one side.
func (e *Engine) inFlight(f *plans.Flight, side plans.Side) []exposed {
	var out []exposed
	for _, v := range f.Volumes {
		known := func(client.Object) bool { return false }
		if side == f.From || e.plan.OneCluster() {
			known = holds(v.Handle)
		}
		out = append(out,
			exposed{side, &corev1.PersistentVolumeClaim{ObjectMeta: named(e.plan.On(side).Namespace, e.plan.ClaimName(side, v.Template, v.Ordinal))}, oneOf([]types.UID{v.Claim})},
			exposed{side, &corev1.PersistentVolume{ObjectMeta: named("", v.Name)}, known})
	}
	return out
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func oneOf(uids []types.UID) func(client.Object) bool {
	return func(o client.Object) bool { return slices.Contains(uids, o.GetUID()) }
}

func holds(handle string) func(client.Object) bool {
	return func(o client.Object) bool {
		pv, ok := o.(*corev1.PersistentVolume)
		return ok && storage.Means(pv, handle)
	}
}

// touched lists the ordinals whose steps may have begun and are not known to be finished, and those that an
// earlier process had to fence.
func (e *Engine) touched(j *journal.Journal) []int32 {
	out := slices.Clone(j.Touched)
	for seq := j.Done + 1; seq <= j.Begun; seq++ {
		s, _ := e.plan.Step(j.Leg, seq)
		for o := range s.Ordinals.All() {
			if !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// fence stamps one object. An absent object needs no fence: an object that is created later has a
// fixed name and content. It returns an error if the object is stamped by another plan, or if
// another process takes over.
func (e *Engine) fence(ctx context.Context, stamp plans.Stamp, j *journal.Journal, x exposed) error {
	key := client.ObjectKeyFromObject(x.object)
	for {
		err := e.on[x.side].Get(ctx, key, x.object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s on the %s: %w", key, x.side, err)
		}
		have, marked := plans.Stamped(x.object)
		now, _, err := e.store.Journal(ctx, e.plan)
		if err != nil {
			return err
		}
		switch {
		case !marked && !x.known(x.object):
			return nil
		case marked && have.Plan != stamp.Plan:
			return fmt.Errorf("%s on the %s %s", key, x.side, stamp.Barred(x.object))
		case now.Epoch != stamp.Epoch, marked && have.Epoch > stamp.Epoch:
			return fmt.Errorf("another process took plan %s over at the same moment", stamp.Plan)
		}
		next, _ := x.object.DeepCopyObject().(client.Object)
		stamp.Put(next)
		if set, ok := next.(*appsv1.StatefulSet); ok {
			plans.MarkSet(set, e.plan, x.side, j.Leg.Direction, j.Saved)
		}
		err = writes.Change(ctx, e.on[x.side], x.object, next)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("stamping %s on the %s: %w", key, x.side, err)
		}
		return nil
	}
}
