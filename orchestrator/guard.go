package orchestrator

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// records returns the two objects that must not disappear while their plan is under way.
func (w *Setup) records(p *plans.Plan) []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(w.Namespace, records.RecordName(p.Name))},
		records.NewDeclared(w.Namespace, p.Name),
	}
}

// recordOf returns the ConfigMap of a plan, without content.
func (w *Setup) recordOf(name string) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: named(w.Namespace, records.RecordName(name))}
	o.APIVersion, o.Kind = "v1", "ConfigMap"
	return o
}

// guard adds the finalizer to both objects. It runs BEFORE a plan is taken over. A process that takes
// over a plan that was never begun checks this by itself (guarded).
func (w *Setup) guard(ctx context.Context, p *plans.Plan) error {
	for _, o := range w.records(p) {
		err := w.alter(ctx, o, func(o client.Object) bool {
			return o.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(o, records.UnderWay)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded reports whether both objects exist, are not being deleted, and have the finalizer.
func (w *Setup) guarded(ctx context.Context, p *plans.Plan) (bool, error) {
	for _, o := range w.records(p) {
		err := w.Live.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err != nil || o.GetDeletionTimestamp() != nil || !controllerutil.ContainsFinalizer(o, records.UnderWay) {
			return false, client.IgnoreNotFound(err)
		}
	}
	return true, nil
}

// letGo removes the finalizers when the plan has ended and keeps no names, or when an object is being
// deleted and the plan was never begun. The record of an ended plan is marked with the same write.
func (m *memory) letGo(ctx context.Context, p *plans.Plan, j *journal.Journal) error {
	for _, o := range m.records(p) {
		if err := there(&m.Setup).Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		uid, marks := o.GetUID(), false
		if _, record := o.(*corev1.ConfigMap); record {
			uid, marks = m.object(p).UID, j.Over() && o.GetLabels()[records.EndedLabel] == ""
		}
		if !marks && !controllerutil.ContainsFinalizer(o, records.UnderWay) {
			continue
		}
		unbegun, err := m.unbegun(ctx, p, o)
		if err != nil {
			return err
		}
		if !j.Over() && !unbegun {
			continue // the user may delete only the other one
		}
		err = m.alter(ctx, o, func(o client.Object) bool {
			if o.GetUID() != uid { // the next plan of this name
				return false
			}
			marked := marks && records.SetEnding(o, p, j)
			return controllerutil.RemoveFinalizer(o, records.UnderWay) || marked
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unbegun reports whether an object is being deleted, its plan was never begun, and no process is about
// to begin it. The Lease is read AFTER the deletion was observed, and the journal after the Lease: any
// process that takes the Lease later observes the deletion.
func (m *memory) unbegun(ctx context.Context, p *plans.Plan, o client.Object) (bool, error) {
	if o.GetDeletionTimestamp() == nil {
		return false, nil
	}
	holder, _, err := m.holder(ctx, m.Live, p.Name)
	if err != nil || holder != "" {
		return false, err
	}
	j, _, err := records.NewStore(m.Live, m.Namespace, p.Name).Journal(ctx, p)
	return err == nil && j.Epoch == 0, err
}

// retracted deletes the record of a plan if it is outdated, and reports whether it was. What was read from a cache is
// read again first. A process that is about to begin the plan sees that its object does not approve it (still), and a
// record that one has begun is kept by its finalizer.
func (m *memory) retracted(ctx context.Context, p *plans.Plan, j *journal.Journal, d *records.Declared) (bool, error) {
	if !outdated(p, j, d) {
		return false, nil
	}
	store := records.NewStore(m.Live, m.Namespace, p.Name)
	var record corev1.ConfigMap
	if err := m.Live.Get(ctx, client.ObjectKeyFromObject(m.object(p)), &record); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	d, err := records.ReadDeclared(ctx, m.Live, m.Namespace, p.Name)
	if err != nil {
		return false, err
	}
	j, _, err = store.Journal(ctx, p)
	if err != nil && !errors.As(err, new(records.ErrNoJournal)) {
		return false, err
	}
	lost := j == nil && slices.Contains(record.Finalizers, records.UnderWay)
	switch {
	case lost, record.DeletionTimestamp != nil, !outdated(p, j, d):
		return false, nil
	case j != nil && j.Over():
		return true, store.Forget(ctx, p, m.Holder, m.dead(ctx, p.Name), m.Now)
	}
	return true, writes.IgnoreAnswers(writes.Delete(ctx, m.Live, &record))
}

// alter changes an object as it is now, if it exists. If it loses to other writers every time, it
// returns the conflict, and the caller tries again later.
func (w *Setup) alter(ctx context.Context, o client.Object, change func(client.Object) bool) error {
	return client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		next, _ := o.DeepCopyObject().(client.Object)
		if !change(next) {
			return nil
		}
		return writes.Change(ctx, w.Live, o, next)
	}))
}
