package sets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// IsDrained reports whether pods are being evicted from a node, or are about to be. Not every
// drain begins with a cordon.
func IsDrained(n *corev1.Node) bool {
	return n.Spec.Unschedulable || n.DeletionTimestamp != nil || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		switch t.Key {
		case "karpenter.sh/disrupted", "karpenter.sh/disruption", // Karpenter, since v1 and before
			"ToBeDeletedByClusterAutoscaler": // DeletionCandidate... only considers it
			return true
		}
		return false
	})
}

// beingDrained selects the nodes of Drained, with no more of them than IsDrained needs.
func beingDrained() clusters.Only {
	return clusters.Only{Of: "the nodes that are being drained", Turns: true, Keep: func(o client.Object) client.Object {
		n, ok := o.(*corev1.Node)
		if !ok || !IsDrained(n) {
			return nil
		}
		out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion, DeletionTimestamp: n.DeletionTimestamp}}
		out.Spec.Unschedulable, out.Spec.Taints = n.Spec.Unschedulable, n.Spec.Taints
		return out.DeepCopy()
	}}
}

// Drained returns the nodes of a side that are being drained.
func Drained(ctx context.Context, w clusters.Pair, side plans.Side) (map[string]bool, error) {
	out := map[string]bool{}
	err := clusters.Each(ctx, w.On[side], func() client.ObjectList { return &corev1.NodeList{} }, func(n *corev1.Node) {
		if IsDrained(n) {
			out[strings.Clone(n.Name)] = true
		}
	}, beingDrained())
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of the %s: %w", side, err)
	}
	return out, nil
}

// PlacedOn returns the pods that are on the given nodes, each with its node.
func PlacedOn(pods map[string]*corev1.Pod, nodes map[string]bool) map[string]string {
	out := map[string]string{}
	for name, pod := range pods {
		if nodes[pod.Spec.NodeName] {
			out[name] = pod.Spec.NodeName
		}
	}
	return out
}

// Need is why pods of a side must be evicted, or have been evicted already.
type Need struct {
	// Exposed maps the pods on nodes that are being drained to their nodes.
	Exposed map[string]string
	// Down is a pod that is not ready, or "". It costs the one unit of the budget already, and only its own
	// side may spend that unit, on this very pod.
	Down string
}

// Needs are the needs of both sides.
type Needs map[plans.Side]Need

// Needs reads what both sides need. Without the right to list nodes it finds no drain.
func (w Steps) Needs(ctx context.Context) (Needs, error) {
	out, nodes := Needs{}, map[string]bool{}
	for _, side := range plans.Sides() {
		if side == plans.Source || !w.Plan.OneCluster() {
			var err error
			if nodes, err = Drained(ctx, w.Pair, side); err != nil && !apierrors.IsForbidden(err) {
				return nil, err
			}
		}
		set, err := w.Set(ctx, side)
		if err != nil {
			return nil, err
		}
		if set == nil {
			continue
		}
		pods, err := w.Pods(ctx, side, set)
		if err != nil {
			return nil, err
		}
		n := Need{Exposed: PlacedOn(pods, nodes)}
		for o := range w.Plan.Ordinals().All() { // a person may have mistyped the set's own range
			if name := w.Plan.Pod(side, o); plans.SliceOf(set).Has(o) && Ready(pods[name]) != "" {
				n.Down = name
			}
		}
		out[side] = n
	}
	return out, nil
}

// Most returns the side that needs the last unit of the budget most, or "" if neither needs it. turn is the
// side that goes first if both have pods on nodes that are being drained.
func (n Needs) Most(turn plans.Side) plans.Side {
	needy := func(is func(Need) bool) plans.Side {
		switch a, b := is(n[plans.Source]), is(n[plans.Destination]); {
		case a == b:
			return ""
		case a:
			return plans.Source
		default:
			return plans.Destination
		}
	}
	exposed := func(n Need) bool { return len(n.Exposed) > 0 }
	if side := needy(func(n Need) bool { return n.Down != "" }); side != "" {
		return side
	}
	if side := needy(exposed); side != "" || !exposed(n[plans.Source]) {
		return side
	}
	return turn
}

// Spare removes the pods that will leave a side anyway.
func (n Needs) Spare(p *plans.Plan, side plans.Side, leave plans.Slice) {
	for o := range leave.All() {
		delete(n[side].Exposed, p.Pod(side, o))
	}
}

// On lists the pods of some sides that are on nodes which are being drained.
func (n Needs) On(sides ...plans.Side) string {
	var out []string
	for _, side := range sides {
		for _, pod := range slices.Sorted(maps.Keys(n[side].Exposed)) {
			out = append(out, fmt.Sprintf("%s (node %s)", pod, n[side].Exposed[pod]))
		}
	}
	return strings.Join(out, ", ")
}
