package expanded

import (
	"context"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// elsewhere finds NetworkPolicies of other applications that let the pods through by the namespace that they leave, and not by
// the one that they come to. Who may not list those of all namespaces is told nothing of them, as with the pods of others.
func (p policies) elsewhere(ctx context.Context) (out []check.Finding, err error) {
	if !joined(p.i) {
		return nil, nil // selectors mean pods of their own cluster
	}
	var all networkingv1.NetworkPolicyList
	if err := p.i.On[plans.Source].List(ctx, &all); err != nil {
		return nil, check.IgnoreForbidden(err)
	}
	namespaces := map[plans.Side]labels.Set{}
	for _, side := range plans.Sides() {
		if namespaces[side], err = p.namespaceOf(ctx, side); err != nil {
			return nil, err
		}
	}
	own := []string{p.i.Plan.Source.Namespace, p.i.Plan.Destination.Namespace}
	for _, of := range all.Items {
		if slices.Contains(own, of.Namespace) {
			continue
		}
		var lost []string
		for _, w := range ways() {
			if w.applies(of.Spec) && p.named(w, of, namespaces, plans.Source) && !p.named(w, of, namespaces, plans.Destination) {
				lost = append(lost, "traffic "+w.verb)
			}
		}
		if len(lost) == 0 {
			continue
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: fmt.Sprintf("NetworkPolicy %s/%s", of.Namespace, of.Name),
			Saw:    fmt.Sprintf("it allows %s the pods in namespace %s, and not in namespace %s", strings.Join(lost, " and "), own[0], own[1]),
			Want:   "the other application to be reached from both namespaces until the end, and from the new one after it",
			Remedy: fmt.Sprintf("let its owner allow namespace %s too before the move: %s -n %s edit networkpolicy %s", own[1], p.i.Kubectl(plans.Source), of.Namespace, of.Name),
		})
	}
	return out, nil
}

// named reports whether a policy of another namespace lets the pods of a side through in a direction, by what their namespace
// is called or labelled.
func (p policies) named(w way, of networkingv1.NetworkPolicy, namespaces map[plans.Side]labels.Set, side plans.Side) bool {
	return w.open(of.Spec, func(peers []networkingv1.NetworkPolicyPeer) bool {
		return slices.ContainsFunc(peers, func(one networkingv1.NetworkPolicyPeer) bool {
			return one.IPBlock == nil && p.matches(one, namespaces[side], p.labelled(side, p.ordinal))
		})
	})
}
