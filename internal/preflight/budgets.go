package preflight

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// budgetsOf reads the PodDisruptionBudgets of a side's namespace.
func (w survey) budgetsOf(ctx context.Context, side plans.Side) ([]policyv1.PodDisruptionBudget, error) {
	var list policyv1.PodDisruptionBudgetList
	namespace := w.Plan.On(side).Namespace
	if err := w.On[side].List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// covered returns the pods of a side that budgets may cover: those that the controller of to will make, and
// the existing ones that has controls.
func (w survey) covered(ctx context.Context, side plans.Side, to, has *appsv1.StatefulSet, ordinals plans.Slice) ([]pdb.Pod, error) {
	all, err := w.EveryPod(ctx, side)
	if err != nil && !apierrors.IsForbidden(err) { // the check permissions reports that; until then only the template is known
		return nil, err
	}
	return pdb.Pods(to, ordinals, slices.DeleteFunc(all, func(p corev1.Pod) bool { return has == nil || !metav1.IsControlledBy(&p, has) })), nil
}

// stray returns a pod of another workload that a budget selects, or "". While a plan is carried out, a list of the pods
// that concern it is kept, and such a pod is not in there: the API server is asked for it.
func (w survey) stray(ctx context.Context, side plans.Side, b *policyv1.PodDisruptionBudget, has *appsv1.StatefulSet) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return "", err
	}
	var list corev1.PodList
	if err := w.On[side].List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		if apierrors.IsForbidden(err) {
			return "", nil
		}
		return "", fmt.Errorf("listing the pods that PodDisruptionBudget %s/%s selects: %w", b.Namespace, b.Name, err)
	}
	for i := range list.Items {
		if has == nil || !metav1.IsControlledBy(&list.Items[i], has) {
			return list.Items[i].Name, nil
		}
	}
	return "", nil
}

// errClash is a Clash where a single budget is needed.
type errClash struct{ pdb.Clash }

func (e errClash) Error() string { return e.String() }

// budgets reads the one PodDisruptionBudget over the pods of each side, if there is one, and sets d
// (MaxUnavailable). An errClash is reported by the check budget-alone.
func (w survey) budgets(ctx context.Context, in *build.Inputs, asked *intstr.IntOrString) error {
	destined, err := in.DestinationSet()
	if err != nil {
		return err
	}
	ordinals := plans.SliceOf(in.Set)
	if in.SourceBudget, err = w.budget(ctx, plans.Source, in.Set, in.Set, ordinals); err != nil {
		return err
	}
	if in.DestinationBudget, err = w.budget(ctx, plans.Destination, destined, in.Existing, ordinals); err != nil {
		return err
	}
	in.MaxUnavailable, err = allowance(*in, plans.Unavailable(asked, ordinals.Replicas))
	return err
}

// budget returns the one PodDisruptionBudget over the pods of a side, or nil. The pods of the destination are
// those that the plan makes there.
func (w survey) budget(ctx context.Context, side plans.Side, to, has *appsv1.StatefulSet, ordinals plans.Slice) (*policyv1.PodDisruptionBudget, error) {
	all, err := w.budgetsOf(ctx, side)
	if err != nil {
		return nil, err
	}
	pods, err := w.covered(ctx, side, to, has, ordinals)
	if err != nil {
		return nil, err
	}
	found, clash, err := pdb.Over(all, pods)
	if clash != nil {
		clash.Object += " on the " + string(side) // the namespaces of two clusters, and their budgets, may be of one name
		return nil, errClash{*clash}
	}
	return found, err
}

// BudgetAlone requires that at most one budget of each side covers pods of the set, and that it covers all of
// them and no others: its numbers become those of the set's ordinals. Where the plan makes a budget,
// BudgetAlone requires that there is none and that its name is free.
func BudgetAlone(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		found, err := budgetsAgainst(ctx, i, side)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func budgetsAgainst(ctx context.Context, i check.Inspection, side plans.Side) ([]check.Finding, error) {
	to, has := i.Now.Set, i.Now.Set
	if side == plans.Destination {
		var err error
		if to, err = build.DestinationSet(i.Now.Set, i.Plan); err != nil {
			return nil, err
		}
		has = i.Now.Existing
	}
	all, err := (survey{i.Pair}).budgetsOf(ctx, side)
	if err != nil {
		return nil, err
	}
	pods, err := (survey{i.Pair}).covered(ctx, side, to, has, i.Plan.Ordinals())
	if err != nil {
		return nil, err
	}
	b, clash, err := pdb.Over(all, pods)
	if err != nil {
		return nil, err
	}
	if clash != nil {
		return []check.Finding{{Object: clash.Object + " on the " + string(side), Saw: clash.Saw, Want: clash.Want, Remedy: clash.Remedy}}, nil
	}
	var out []check.Finding
	if taken := nameTaken(i, side, all, b); taken != nil {
		out = append(out, *taken)
	}
	if b == nil {
		return out, nil
	}
	stray, err := (survey{i.Pair}).stray(ctx, side, b, has)
	if err != nil || stray == "" {
		return out, err
	}
	return append(out, check.Finding{
		Object: "PodDisruptionBudget " + b.Namespace + "/" + b.Name + " on the " + string(side), Saw: "it also selects pod " + stray, Want: "only pods of " + i.Plan.On(side).Name,
		Remedy: "narrow its selector, or give the other workload a budget of its own",
	}), nil
}

// nameTaken reports a budget that is in the way of the one that the plan makes. Otherwise Tighten would find
// it when it creates the budget, after the sets and the volumes have been written.
func nameTaken(i check.Inspection, side plans.Side, all []policyv1.PodDisruptionBudget, over *policyv1.PodDisruptionBudget) *check.Finding {
	name, existed := i.Plan.BudgetOn(side)
	if existed {
		return nil
	}
	for k := range all {
		b := &all[k]
		if b.Name != name && (over == nil || b.Name != over.Name) {
			continue
		}
		if s, ok := plans.Stamped(b); ok && s.Plan == i.Plan.ID { // also where the record is lost: the pods need it
			continue
		}
		return &check.Finding{
			Object: "PodDisruptionBudget " + b.Namespace + "/" + b.Name + " on the " + string(side), Saw: "it exists, and the plan does not know it",
			Want:   "none over the pods of the set, and none named " + name + ", which the plan makes there",
			Remedy: "give it another name if it is about other pods, which it goes on to protect; to have one kept that is over all pods of the set, make a new plan; delete it only if it is needed no more",
		}
	}
	return nil
}
