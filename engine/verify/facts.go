package verify

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// facts is everything of both clusters that a plan makes promises about.
type facts struct {
	sets    map[plans.Side]*appsv1.StatefulSet
	pods    map[plans.Side]map[string]*corev1.Pod // those with the names of the plan's ordinals
	budgets map[plans.Side]*policyv1.PodDisruptionBudget
	traces  []storage.Trace
	marked  []mark
}

// mark is an object that carries annotations of a plan.
type mark struct{ object, stamp string }

func read(ctx context.Context, w clusters.Pair) (*facts, error) {
	f := &facts{
		sets: map[plans.Side]*appsv1.StatefulSet{}, pods: map[plans.Side]map[string]*corev1.Pod{},
		budgets: map[plans.Side]*policyv1.PodDisruptionBudget{},
	}
	var errs []error
	for _, side := range plans.Sides() {
		errs = append(errs, f.side(ctx, w, side))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var err error
	f.traces, err = storage.Traces(ctx, w.Plan, w.On, f.note(""))
	return f, err
}

// side reads the set, the pods, the budget, the revisions and the copies of a side.
func (f *facts) side(ctx context.Context, w clusters.Pair, side plans.Side) error {
	set, err := w.Set(ctx, side)
	if err != nil {
		return err
	}
	note := f.note(side)
	if set != nil {
		f.sets[side] = set
		note(set)
	}
	all, err := w.EveryPod(ctx, side)
	if err != nil {
		return err
	}
	f.pods[side] = map[string]*corev1.Pod{}
	for o := range w.Plan.Ordinals().All() {
		for k := range all {
			if all[k].Name == w.Plan.Pod(o) {
				f.pods[side][all[k].Name] = &all[k]
			}
		}
	}
	name, _ := w.Plan.BudgetOn(side)
	ref := w.Plan.On(side)
	b, err := clusters.Get[policyv1.PodDisruptionBudget](ctx, w.On[side], ref.Namespace, name, ref.String())
	if err != nil {
		return err
	}
	if b != nil {
		f.budgets[side] = b
		note(b)
	}
	return errors.Join(revisions(ctx, w, side, set, note), copies(ctx, w, side, note))
}

// revisions reads the marks that the controller of a set has copied to its revisions.
func revisions(ctx context.Context, w clusters.Pair, side plans.Side, set *appsv1.StatefulSet, note func(client.Object)) error {
	if set == nil {
		return nil
	}
	var all appsv1.ControllerRevisionList
	if err := w.On[side].List(ctx, &all, client.InNamespace(set.Namespace)); err != nil {
		return fmt.Errorf("listing the revisions of %s: %w", w.Plan.On(side), err)
	}
	for k := range all.Items {
		if metav1.IsControlledBy(&all.Items[k], set) {
			note(&all.Items[k])
		}
	}
	return nil
}

// copies reads the marks of what was copied to the destination. A user without the right to read a Secret learns
// nothing of its marks.
func copies(ctx context.Context, w clusters.Pair, side plans.Side, note func(client.Object)) error {
	if side == plans.Source {
		return nil
	}
	for _, d := range w.Plan.Dependencies {
		o, err := w.Dependency(ctx, side, d)
		switch {
		case apierrors.IsForbidden(err):
		case err != nil:
			return err
		case o != nil:
			note(o)
		}
	}
	return nil
}

// note returns a function that records the objects with a stamp.
func (f *facts) note(side plans.Side) func(client.Object) {
	return func(o client.Object) {
		if s, ok := plans.Stamped(o); ok {
			f.marked = append(f.marked, mark{named(o, side), s.Plan})
		}
	}
}

// named returns an object for a message.
func named(o client.Object, side plans.Side) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	out := clusters.KindOf(o) + " " + name
	if side != "" {
		out += " on the " + string(side)
	}
	return out
}
