package expanded

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// PoliciesOfNamespace warns of what others say about the pods in one namespace and not in the other: NetworkPolicies that
// keep the members of the two sides apart, or that only the source has, and monitors that do not see the pods over there.
func PoliciesOfNamespace(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	all := map[plans.Side][]networkingv1.NetworkPolicy{}
	for _, side := range plans.Sides() {
		var list networkingv1.NetworkPolicyList
		if err := i.On[side].List(ctx, &list, client.InNamespace(i.Plan.On(side).Namespace)); err != nil {
			return check.Unseen(err, fmt.Sprintf("NetworkPolicies of namespace %s on the %s", i.Plan.On(side).Namespace, side), "networkpolicies")
		}
		all[side] = list.Items
	}
	p := policies{sides: s, i: i, all: all}
	out, err := p.apart(ctx)
	if err != nil {
		return nil, err
	}
	others, err := p.elsewhere(ctx)
	if err != nil {
		return nil, err
	}
	monitored, err := monitors(ctx, i, s)
	return slices.Concat(out, p.single(), others, monitored), err
}

// policies are the NetworkPolicies of both namespaces.
type policies struct {
	sides
	i   check.Inspection
	all map[plans.Side][]networkingv1.NetworkPolicy
}

// about returns the ordinals whose pods a policy selects.
func (p policies) about(side plans.Side, of networkingv1.NetworkPolicy) (out []int32) {
	selector, err := metav1.LabelSelectorAsSelector(&of.Spec.PodSelector)
	if err != nil {
		return nil
	}
	for o := range p.i.Plan.Ordinals().All() {
		if selector.Matches(p.labelled(side, o)) {
			out = append(out, o)
		}
	}
	return out
}

// words says which pods a policy selects: all of them, or some.
func (p policies) words(side plans.Side, of networkingv1.NetworkPolicy) string {
	ordinals := p.about(side, of)
	if len(ordinals) == int(p.i.Plan.Count) {
		return "the pods"
	}
	var names []string
	for _, o := range ordinals {
		names = append(names, p.i.Plan.Pod(side, o))
	}
	return check.Few(names)
}

// single finds the policies of the source that have no equal on the destination.
func (p policies) single() (out []check.Finding) {
	for _, of := range p.all[plans.Source] {
		if len(p.about(plans.Source, of)) == 0 || slices.ContainsFunc(p.all[plans.Destination], func(o networkingv1.NetworkPolicy) bool { return equality.Semantic.DeepEqual(o.Spec, of.Spec) }) {
			continue
		}
		from, to := p.i.Plan.Source.Namespace, p.i.Plan.Destination.Namespace
		out = append(out, check.Finding{
			Level: check.Warn, Object: fmt.Sprintf("NetworkPolicy %s/%s on the source", from, of.Name), Saw: fmt.Sprintf("it selects %s here, and namespace %s has no policy that says the same", p.words(plans.Source, of), to),
			Want: "the same to be allowed and forbidden on both sides", Remedy: "it is not copied; make it there, with the peers of the new namespace, before the move\n" +
				p.i.Kubectl(plans.Destination) + " apply -f - <<END\n" + manifest(networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: to, Name: of.Name}, Spec: of.Spec}) + "END",
		})
	}
	return out
}

// manifest returns a policy as YAML.
func manifest(of networkingv1.NetworkPolicy) string {
	of.TypeMeta = metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}
	raw, err := yaml.Marshal(of)
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(raw), "  creationTimestamp: null\n", "")
}

// way is a direction of traffic, as a NetworkPolicy names it.
type way struct {
	kind networkingv1.PolicyType
	verb string
	// open reports whether a policy lets all pods, or one that matches, through.
	open func(networkingv1.NetworkPolicySpec, func([]networkingv1.NetworkPolicyPeer) bool) bool
}

func ways() []way {
	return []way{
		{networkingv1.PolicyTypeIngress, "from", func(s networkingv1.NetworkPolicySpec, through func([]networkingv1.NetworkPolicyPeer) bool) bool {
			return slices.ContainsFunc(s.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return through(r.From) })
		}},
		{networkingv1.PolicyTypeEgress, "to", func(s networkingv1.NetworkPolicySpec, through func([]networkingv1.NetworkPolicyPeer) bool) bool {
			return slices.ContainsFunc(s.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return through(r.To) })
		}},
	}
}

// applies reports whether a policy isolates its pods in a direction.
func (w way) applies(s networkingv1.NetworkPolicySpec) bool {
	if len(s.PolicyTypes) == 0 {
		return w.kind == networkingv1.PolicyTypeIngress || len(s.Egress) > 0
	}
	return slices.Contains(s.PolicyTypes, w.kind)
}

// apart finds policies of a side that let no pod of the other side through: members cannot reach one another while they are
// on two sides.
func (p policies) apart(ctx context.Context) (out []check.Finding, err error) {
	for _, side := range plans.Sides() {
		peer := labels.Set{}
		if joined(p.i) {
			if peer, err = p.namespaceOf(ctx, side.Other()); err != nil {
				return nil, err
			}
		}
		for _, w := range ways() {
			if f, closed := p.closed(side, w, peer); closed {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// namespaceOf returns the labels of a side's namespace.
func (p policies) namespaceOf(ctx context.Context, side plans.Side) (labels.Set, error) {
	name := p.i.Plan.On(side).Namespace
	var ns corev1.Namespace
	err := p.i.On[side].Get(ctx, client.ObjectKey{Name: name}, &ns)
	if check.IgnoreForbidden(client.IgnoreNotFound(err)) != nil {
		return nil, err
	}
	out := labels.Set{corev1.LabelMetadataName: name}
	for k, v := range ns.Labels {
		out[k] = v
	}
	return out, nil
}

// closed reports whether the policies of a side that isolate a pod in a direction let no pod of the other side through.
func (p policies) closed(side plans.Side, w way, peer labels.Set) (check.Finding, bool) {
	own := p.i.Plan.On(side).Namespace
	for o := range p.i.Plan.Ordinals().All() {
		var isolating []networkingv1.NetworkPolicy
		for _, of := range p.all[side] {
			if slices.Contains(p.about(side, of), o) && w.applies(of.Spec) {
				isolating = append(isolating, of)
			}
		}
		through := func(peers []networkingv1.NetworkPolicyPeer) bool {
			return len(peers) == 0 || slices.ContainsFunc(peers, func(one networkingv1.NetworkPolicyPeer) bool {
				return p.matches(one, peer, p.labelled(side.Other(), o))
			})
		}
		if len(isolating) == 0 || slices.ContainsFunc(isolating, func(of networkingv1.NetworkPolicy) bool { return w.open(of.Spec, through) }) {
			continue
		}
		var names []string
		for _, of := range isolating {
			names = append(names, own+"/"+of.Name)
		}
		return check.Finding{
			Level: check.Warn, Object: "NetworkPolicy " + strings.Join(names, ", ") + " on the " + string(side),
			Saw:    fmt.Sprintf("%s isolates %s of the set (%s), and no policy allows traffic %s those of the %s", plural(names), p.words(side, isolating[0]), w.kind, w.verb, side.Other()),
			Want:   "members that reach one another while they are on two sides; readiness often does not show that they do not",
			Remedy: p.opening(side, w),
		}, true
	}
	return check.Finding{}, false
}

func plural(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "together they"
}

// matches reports whether a peer of a rule is, or may be, a pod of the other side.
func (p policies) matches(one networkingv1.NetworkPolicyPeer, namespace, pod labels.Set) bool {
	if one.IPBlock != nil {
		return true // nothing tells here what is behind these addresses
	}
	if one.NamespaceSelector == nil || !joined(p.i) {
		return false // its own namespace, or its own cluster
	}
	n, err := metav1.LabelSelectorAsSelector(one.NamespaceSelector)
	if err != nil || !n.Matches(namespace) {
		return false
	}
	if one.PodSelector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(one.PodSelector)
	return err == nil && s.Matches(pod)
}

// opening is the remedy: a policy that lets the pods of the other side through until the end.
func (p policies) opening(side plans.Side, w way) string {
	at := p.i.Plan.On(side)
	if !joined(p.i) {
		return fmt.Sprintf("selectors mean pods of their own cluster: allow the addresses of the other cluster's pods (ipBlock) in namespace %s until `finalize`, in both directions", at.Namespace)
	}
	set := p.set
	if side == plans.Destination {
		set = p.destined
	}
	peer := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: p.i.Plan.On(side.Other()).Namespace}}, PodSelector: set.Spec.Selector,
	}
	spec := networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{}, PolicyTypes: []networkingv1.PolicyType{w.kind}}
	if set.Spec.Selector != nil {
		spec.PodSelector = *set.Spec.Selector
	}
	if w.kind == networkingv1.PolicyTypeIngress {
		spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{peer}}}
	} else {
		spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{peer}}}
	}
	of := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: fmt.Sprintf("%s-%s-%s", at.Name, w.verb, p.i.Plan.On(side.Other()).Namespace)}, Spec: spec}
	return "allow it until `finalize`, and delete this afterwards\n" + p.i.Kubectl(side) + " apply -f - <<END\n" + manifest(of) + "END"
}
