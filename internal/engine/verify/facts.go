package verify

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// facts is everything of both clusters that a plan makes promises about.
type facts struct {
	sets    map[plans.Side]*appsv1.StatefulSet
	pods    map[plans.Side]map[string]*corev1.Pod // those with the names of the plan's ordinals
	budgets map[plans.Side]*policyv1.PodDisruptionBudget
	traces  []storage.Trace
	// copied is how what pods name compares on both sides.
	copied copies.Compared
	// clients is which Services of clients are not served as the plan says.
	clients []string
	unlike  string // how the pod templates of both sets differ, or ""
	seen    []mark // of every object that may carry one
}

// mark is an object, and the plan whose annotations it carries; "" if it carries none.
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
	copied, err := w.Copies(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range copied {
		f.note(plans.Destination)(o)
	}
	if f.copied, err = copies.Compare(ctx, w); err != nil {
		return nil, err
	}
	f.clients = clients.Strays(ctx, w)
	if f.traces, err = storage.Traces(ctx, w.Plan, w.On, f.note("")); err != nil {
		return nil, err
	}
	f.unlike, err = sets.Unlike(ctx, w)
	return f, err
}

// side reads the set, the pods, the budget and the revisions of a side.
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
	names := map[string]bool{}
	for o := range w.Plan.Ordinals().All() {
		names[w.Plan.Pod(side, o)] = true
	}
	f.pods[side] = map[string]*corev1.Pod{}
	for k := range all {
		if names[all[k].Name] {
			f.pods[side][all[k].Name] = &all[k]
		}
	}
	b, err := w.Budget(ctx, side)
	if err != nil {
		return err
	}
	if b != nil {
		f.budgets[side] = b
		note(b)
	}
	revisions, err := w.Revisions(ctx, side, set)
	for _, r := range revisions {
		note(r)
	}
	return err
}

// note returns a function that records an object of a side.
func (f *facts) note(side plans.Side) func(client.Object) {
	return func(o client.Object) {
		s, _ := plans.Stamped(o)
		f.seen = append(f.seen, mark{named(o, side), s.Plan})
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
