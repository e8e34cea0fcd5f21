package trials

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/plans"
)

// existing returns the object that a write changes or deletes, if it exists and is one of those that the plan writes. Before
// the first write it notes the objects that do not exist yet.
func (t trier) existing(ctx context.Context, a ask, how kind) (client.Object, error) {
	o, err := t.read(ctx, a, how)
	if err != nil {
		return nil, err
	}
	if o == nil {
		if !t.Midway {
			t.note(&t.seen.unmade, a)
		}
		return nil, nil
	}
	if !t.written(a, how, o) || o.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return o, nil
}

// read returns the object of a write, nil if there is none.
func (t trier) read(ctx context.Context, a ask, how kind) (client.Object, error) {
	key := client.ObjectKey{Namespace: a.Namespace, Name: a.Name}
	switch {
	case a.OfClaim:
		claim, err := t.Claim(ctx, a.Side, a.Name)
		if err != nil || claim == nil || claim.Spec.VolumeName == "" {
			return nil, err
		}
		key = client.ObjectKey{Name: claim.Spec.VolumeName}
	case a.Kind == "ControllerRevision":
		set, err := t.Set(ctx, a.Side)
		if err != nil || set == nil {
			return nil, err
		}
		all, err := t.Revisions(ctx, a.Side, set)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		return all[0], nil
	}
	o := how.empty()
	err := t.On[a.Side].Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// written reports whether the plan writes an object. An object of the user on the destination is in the way of the plan, which
// other checks report, unless the plan knows it.
func (t trier) written(a ask, how kind, o client.Object) bool {
	have, stamped := plans.Stamped(o)
	mine := stamped && have.Plan == t.Plan.ID || o.GetLabels()[dns.PlanLabel] == t.Plan.ID
	known := a.Side == plans.Source || a.Kind == "ControllerRevision"
	switch native(t.Plan, a) {
	case plans.NativeKind:
		known = known || t.Plan.Existed()
	case "PodDisruptionBudget":
		_, existed := t.Plan.BudgetOn(a.Side)
		return mine || existed && !stamped
	}
	return mine || known && !stamped && !how.ofPlan
}

func (t trier) note(into *[]ask, a ask) {
	t.seen.lock.Lock()
	defer t.seen.lock.Unlock()
	*into = append(*into, a)
}

// first returns the ordinals of the wave, or those of the first one.
func (t trier) first() plans.Slice {
	if t.Midway {
		return t.Ordinals
	}
	for wave := range t.Plan.Waves(there(t.Plan)) {
		return wave
	}
	return t.Plan.Ordinals()
}
