package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
)

// SettleTime is how long a pod must be Ready before it counts as stable.
const SettleTime = 5 * time.Minute

// ReadyForAWhile warns of pods that became Ready within SettleTime. It compares a node's clock with ours,
// which is good enough for a warning and for nothing else.
func ReadyForAWhile(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	pods, err := i.Pods(ctx, plans.Source, i.Now.Set)
	if err != nil {
		return nil, err
	}
	young := lately(pods, time.Since)
	if len(young) == 0 {
		return nil, nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: i.Name(plans.Source), Saw: "Ready only lately: " + strings.Join(young, ", "), Want: fmt.Sprintf("every pod Ready for %s", Minutes(SettleTime)),
		Remedy: "wait, if the application needs time to settle; see why they restarted if you did not expect it",
	}}, nil
}

// lately names the pods that became Ready within SettleTime, sorted.
func lately(pods map[string]*corev1.Pod, since func(time.Time) time.Duration) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		for _, c := range pods[name].Status.Conditions {
			if d := since(c.LastTransitionTime.Time); c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && d < SettleTime {
				out = append(out, fmt.Sprintf("%s (%s)", name, d.Round(time.Second)))
			}
		}
	}
	return out
}

// Drains warns of nodes that are being drained: those with pods of the set, and those where pods will go.
// Between two ordinals a move makes way for a drain, and takes longer for it.
func Drains(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		if side == plans.Destination && i.Plan.OneCluster() {
			continue // the same nodes
		}
		drained, err := sets.Drained(ctx, i.Pair, side)
		if apierrors.IsForbidden(err) {
			return append(out, unseenNodes(i, side)), nil
		}
		if err != nil {
			return nil, err
		}
		if len(drained) == 0 {
			continue
		}
		f := check.Finding{
			Level: check.Warn, Object: fmt.Sprintf("nodes of the %s (%s)", side, i.Plan.On(side).Context), Saw: "cordoned, or marked to be drained: " + strings.Join(slices.Sorted(maps.Keys(drained)), ", "),
			Want: "no node that is being drained", Remedy: "let the drain finish first, or uncordon them",
		}
		if side == plans.Source {
			pods, err := i.Pods(ctx, side, i.Now.Set)
			if err != nil {
				return nil, err
			}
			if exposed := sets.PlacedOn(pods, drained); len(exposed) > 0 {
				f.Saw += ", with " + strings.Join(slices.Sorted(maps.Keys(exposed)), ", ")
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// unseenNodes reports that nodes may not be read. A move without volumes needs no right to read them.
func unseenNodes(i check.Inspection, side plans.Side) check.Finding {
	return check.Finding{
		Level: check.Warn, Unseen: true, Object: fmt.Sprintf("nodes of the %s (%s)", side, i.Plan.On(side).Context), Saw: "you may not list them", Want: "to be able to look",
		Remedy: "let a user who may list them check, or ask for `list` on nodes",
	}
}

// Selector refuses pods of other workloads that the set's selector also selects: Service and
// PodDisruptionBudget would count them with the set's.
func Selector(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	selector := i.Now.Set.Spec.Selector
	var out []check.Finding
	for _, side := range plans.Sides() {
		pods, err := strangers(ctx, i, side, selector)
		if err != nil {
			return nil, err
		}
		for _, p := range pods {
			out = append(out, check.Finding{
				Object: fmt.Sprintf("pod %s/%s on the %s", p.Namespace, p.Name, side), Saw: "the set's selector (" + metav1.FormatLabelSelector(selector) + ") selects it too",
				Want: "only pods of the set", Remedy: "give the other pods other labels, or move them away: budget and Service of the set would count them",
			})
		}
	}
	return out, nil
}

// strangers returns the pods in the namespace of a side that a selector selects and that the set does not
// control.
func strangers(ctx context.Context, i check.Inspection, side plans.Side, by *metav1.LabelSelector) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, err
	}
	set, namespace := i.Now.Set, i.Plan.On(side).Namespace
	if side == plans.Destination {
		set = i.Now.Existing
	}
	var pods corev1.PodList
	if err := i.On[side].List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return set != nil && metav1.IsControlledBy(&p, set) }), nil
}

// Minutes returns a duration in whole minutes, in words.
func Minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }
