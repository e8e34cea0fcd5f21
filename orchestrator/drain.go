package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// isDrained says whether pods are being evicted from a node, or are about to be. Not every
// drain begins with a cordon.
func isDrained(n *corev1.Node) bool {
	return n.Spec.Unschedulable || n.DeletionTimestamp != nil || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		switch t.Key {
		case "karpenter.sh/disrupted", "karpenter.sh/disruption", // of Karpenter, since v1 and before
			"ToBeDeletedByClusterAutoscaler": // DeletionCandidate... is a thought only
			return true
		}
		return false
	})
}

// drained are the nodes of a side that are being drained.
func drained(ctx context.Context, w pair, side plans.Side) (map[string]bool, error) {
	out := map[string]bool{}
	err := storage.Each(ctx, w.on[side], func() client.ObjectList { return &corev1.NodeList{} }, func(n *corev1.Node) {
		if isDrained(n) {
			out[strings.Clone(n.Name)] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of the %s: %w", side, err)
	}
	return out, nil
}

// placedOn gives the pods that are on some nodes, and these.
func placedOn(pods map[string]*corev1.Pod, nodes map[string]bool) map[string]string {
	out := map[string]string{}
	for name, pod := range pods {
		if nodes[pod.Spec.NodeName] {
			out[name] = pod.Spec.NodeName
		}
	}
	return out
}

// need is why an eviction has to come for pods of a side, or came already.
type need struct {
	// exposed are the pods on nodes that are being drained, and these.
	exposed map[string]string
	// down is a pod that is not ready, or "". It costs the unit already, and only its own side may
	// spend that, on this very pod.
	down string
}

// needs are those of both sides.
type needs map[plans.Side]need

// needs reads what both sides need. Who may not see nodes sees no drain.
func (w world) needs(ctx context.Context) (needs, error) {
	out, nodes := needs{}, map[string]bool{}
	for _, side := range plans.Sides() {
		if side == plans.Source || !w.plan.OneCluster() {
			var err error
			if nodes, err = drained(ctx, w.pair, side); err != nil && !apierrors.IsForbidden(err) {
				return nil, err
			}
		}
		set, err := w.set(ctx, side)
		if err != nil {
			return nil, err
		}
		if set == nil {
			continue
		}
		pods, err := w.pods(ctx, side, set)
		if err != nil {
			return nil, err
		}
		n := need{exposed: placedOn(pods, nodes)}
		for o := range plans.SliceOf(set).All() {
			if name := w.plan.Pod(o); ready(pods[name]) != "" {
				n.down = name
			}
		}
		out[side] = n
	}
	return out, nil
}

// most gives the side that needs the last unit of the budget most, and "" if neither needs it. turn
// is whose turn it is where both have pods on nodes that are being drained.
func (n needs) most(turn plans.Side) plans.Side {
	needy := func(is func(need) bool) plans.Side {
		switch a, b := is(n[plans.Source]), is(n[plans.Destination]); {
		case a == b:
			return ""
		case a:
			return plans.Source
		default:
			return plans.Destination
		}
	}
	exposed := func(n need) bool { return len(n.exposed) > 0 }
	if side := needy(func(n need) bool { return n.down != "" }); side != "" {
		return side
	}
	if side := needy(exposed); side != "" || !exposed(n[plans.Source]) {
		return side
	}
	return turn
}

// spare leaves pods out that are about to leave a side anyway.
func (n needs) spare(p *plans.Plan, side plans.Side, leave plans.Slice) {
	for o := range leave.All() {
		delete(n[side].exposed, p.Pod(o))
	}
}

// on names the pods of some sides that are on nodes which are being drained.
func (n needs) on(sides ...plans.Side) string {
	var out []string
	for _, side := range sides {
		for _, pod := range slices.Sorted(maps.Keys(n[side].exposed)) {
			out = append(out, fmt.Sprintf("%s (node %s)", pod, n[side].exposed[pod]))
		}
	}
	return strings.Join(out, ", ")
}
