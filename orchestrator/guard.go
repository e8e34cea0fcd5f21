package orchestrator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
	"github.com/stsmigrate/stsmigrate/writes"
)

// finalizer keeps the object and the plan of what is under way: they can be deleted, and go when it has ended.
const finalizer = "stsmigrate.dev/under-way"

// records are the two objects that must not go from under a plan.
func (h *Orchestrator) records(p *plans.Plan) []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(h.Namespace, records.RecordName(p.Name))},
		records.NewDeclared(h.Namespace, p.Name),
	}
}

// guard keeps both from being deleted. It comes BEFORE a plan is taken over; whoever takes over one that was never begun
// sees for himself that it is so (guarded).
func (h *Orchestrator) guard(ctx context.Context, p *plans.Plan) error {
	for _, o := range h.records(p) {
		err := h.alter(ctx, o, func(o client.Object) bool {
			return o.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(o, finalizer)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded reports whether both are there to stay.
func (h *Orchestrator) guarded(ctx context.Context, p *plans.Plan) (bool, error) {
	for _, o := range h.records(p) {
		err := h.Live.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err != nil || o.GetDeletionTimestamp() != nil || !controllerutil.ContainsFinalizer(o, finalizer) {
			return false, client.IgnoreNotFound(err)
		}
	}
	return true, nil
}

// letGo lets both be deleted when the plan has ended, or when somebody deletes one and nothing was ever begun.
func (h *Orchestrator) letGo(ctx context.Context, p *plans.Plan, j *plans.Journal) error {
	over := j.Ended() && !j.KeepNames
	for _, o := range h.records(p) {
		if err := h.Cached.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		if !controllerutil.ContainsFinalizer(o, finalizer) {
			continue
		}
		unbegun, err := h.unbegun(ctx, p, o)
		if err != nil || !over && !unbegun {
			return err
		}
		err = h.alter(ctx, o, func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, finalizer) })
		if err != nil {
			return err
		}
	}
	return nil
}

// unbegun reports whether an object is being deleted and nobody has begun its plan, or is about to. The Lease is read
// AFTER the deletion was seen, and the journal after the Lease: who has it later sees the deletion.
func (h *Orchestrator) unbegun(ctx context.Context, p *plans.Plan, o client.Object) (bool, error) {
	if o.GetDeletionTimestamp() == nil {
		return false, nil
	}
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	holder, err := store.Holder(ctx, h.Now)
	if err != nil || holder != "" {
		return false, err
	}
	j, _, err := store.Journal(ctx, p)
	return err == nil && j.Epoch == 0, err
}

// alter changes an object as it is now, if it is there. Who loses to others again and again comes back later.
func (h *Orchestrator) alter(ctx context.Context, o client.Object, change func(client.Object) bool) error {
	return client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := h.Live.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		next, _ := o.DeepCopyObject().(client.Object)
		if !change(next) {
			return nil
		}
		return writes.Change(ctx, h.Live, o, next)
	}))
}
