package pdb

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Pod is the part of a pod that matters to a PodDisruptionBudget.
type Pod struct {
	Name   string
	Labels labels.Set
}

// Pods returns the pods of a set: those that its controller creates for the ordinals, with the labels of the
// template and the controller's own, and the existing pods, whose labels may have changed since.
func Pods(set *appsv1.StatefulSet, ordinals plans.Slice, there []corev1.Pod) []Pod {
	var out []Pod
	for o := range ordinals.All() {
		name := fmt.Sprintf("%s-%d", set.Name, o)
		out = append(out, Pod{name, labels.Merge(set.Spec.Template.Labels, labels.Set{
			appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(int(o)), appsv1.StatefulSetRevisionLabel: set.Status.UpdateRevision,
		})})
	}
	for _, p := range there {
		out = append(out, Pod{p.Name, p.Labels})
	}
	return out
}

// Clash is the reason why a move cannot keep the budgets over some pods.
type Clash struct{ Object, Saw, Want, Remedy string }

// String returns the clash in one sentence.
func (c Clash) String() string {
	return fmt.Sprintf("%s: %s, expected %s: %s", c.Object, c.Saw, c.Want, c.Remedy)
}

// Over returns the one budget over all the pods, or nil if no budget selects any, or the clash if neither is
// true.
//
// A budget over only some of the pods cannot be kept: what it allows depends on where exactly these pods
// are, it selects other pods when labels change, and there is no number for the other side. It cannot be
// left unchanged either: all pods need a budget while they move, and Kubernetes evicts no pod that two
// budgets select.
func Over(all []policyv1.PodDisruptionBudget, pods []Pod) (*policyv1.PodDisruptionBudget, *Clash, error) {
	over := make([]*policyv1.PodDisruptionBudget, len(pods))
	var found *policyv1.PodDisruptionBudget
	var partial *Clash
	for i := range all {
		b := &all[i]
		in, out, err := selects(b, pods)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range in {
			if other := over[k]; other != nil {
				return nil, &Clash{
					Object: fmt.Sprintf("PodDisruptionBudgets %s and %s of namespace %s", other.Name, b.Name, b.Namespace), Saw: fmt.Sprintf("both select pod %s", pods[k].Name),
					Want: "at most one over a pod, since Kubernetes evicts no pod that has two", Remedy: "delete one of them",
				}, nil
			}
			over[k] = b
		}
		switch {
		case len(in) == 0:
		case len(out) == 0:
			found = b
		default:
			partial = &Clash{
				Object: fmt.Sprintf("PodDisruptionBudget %s/%s", b.Namespace, b.Name), Saw: fmt.Sprintf("it selects pod %s, and not pod %s with the labels that the set gives it", pods[in[0]].Name, pods[out[0]].Name),
				Want:   "a budget that selects all pods of the set by labels of the pod template: a budget over some of them can neither be divided between two sides nor be combined with one over all",
				Remedy: "delete it until the move is done, or replace it by one that selects all pods",
			}
		}
	}
	if partial != nil {
		return nil, partial, nil
	}
	return found, nil, nil
}

// selects returns the indexes of the pods that a budget selects (in) and of those that it does not select
// (out).
func selects(b *policyv1.PodDisruptionBudget, pods []Pod) (in, out []int, err error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil, nil, fmt.Errorf("selector of PodDisruptionBudget %s/%s: %w", b.Namespace, b.Name, err)
	}
	for k, p := range pods {
		if selector.Matches(p.Labels) {
			in = append(in, k)
		} else {
			out = append(out, k)
		}
	}
	return in, out, nil
}

// astray returns the reason why a budget does not select all pods of its set: it does not protect the
// others, whatever its numbers are (S12). If there is no budget, it returns the reason why none may be
// created: another budget selects these pods.
func (k budgets) astray(ctx context.Context, side plans.Side, b *policyv1.PodDisruptionBudget) (string, error) {
	var set appsv1.StatefulSet
	there, err := k.get(ctx, side, k.Plan.On(side).Name, &set)
	if err != nil || !there {
		return "", err // the looks at the set report this
	}
	if b == nil {
		return k.rival(ctx, side, &set)
	}
	_, out, err := selects(b, Pods(&set, k.Plan.Ordinals(), nil))
	if err != nil || len(out) == 0 {
		return "", err
	}
	return fmt.Sprintf("PodDisruptionBudget %s of %s no longer selects the pods of the set: its selector was changed to %s by %s; set it back",
		b.Name, k.Plan.On(side), metav1.FormatLabelSelector(b.Spec.Selector), plans.Writer(b, "spec", "selector")), nil
}

// rival returns the reason why a budget must not be created. One of the very name is no rival: it has arrived
// since the budgets were read, the API server refuses the creation, and the next look judges it.
func (k budgets) rival(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) (string, error) {
	var all policyv1.PodDisruptionBudgetList
	if err := k.On[side].List(ctx, &all, client.InNamespace(set.Namespace)); err != nil {
		return "", fmt.Errorf("listing the PodDisruptionBudgets of namespace %s: %w", set.Namespace, err)
	}
	name, _ := k.Plan.BudgetOn(side)
	others := slices.DeleteFunc(all.Items, func(b policyv1.PodDisruptionBudget) bool { return b.Name == name })
	var pods corev1.PodList
	if err := k.On[side].List(ctx, &pods, client.InNamespace(set.Namespace)); err != nil {
		return "", fmt.Errorf("listing the pods of %s: %w", k.Plan.On(side), err)
	}
	there := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, set) })
	found, clash, err := Over(others, Pods(set, k.Plan.Ordinals(), there))
	switch {
	case err != nil:
		return "", err
	case clash != nil:
		return clash.String(), nil
	case found != nil:
		return fmt.Sprintf("PodDisruptionBudget %s of %s was created by another writer after the plan was made, and selects the same pods; delete it, or make a new plan", found.Name, k.Plan.On(side)), nil
	}
	return "", nil
}
