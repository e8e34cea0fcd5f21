package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
)

// NodesFit requires a node for each pod that is still to come, in the order of the plan, as the scheduler of that side
// would find one: beside the pods that run there, those that have come before, and, within one cluster, those that have
// not left yet. Where the scheduler's choices decide, or something is not known, the user has to.
func NodesFit(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	nodes, err := nodes(ctx, i)
	if apierrors.IsForbidden(err) {
		return []check.Finding{unseenNodes(i, i.To())}, nil
	}
	if err != nil {
		return nil, err
	}
	q, err := asked(ctx, i)
	if err != nil {
		return nil, err
	}
	out := unjudged(i, q)
	if len(out) > 0 || len(q.names) == 0 {
		return out, nil
	}
	c, err := crowdOf(ctx, i, q, nodes)
	if err != nil {
		return nil, err
	}
	if out = c.unread(i, q); !slices.ContainsFunc(out, func(f check.Finding) bool { return f.Level == check.Fail }) {
		if found := placed(i, q, &c.world); len(found) > 0 {
			out = found
		}
	}
	if !i.Midway {
		out = append(out, ownNamespace(i, c.world.Namespaces)...)
	}
	return out, nil
}

// nodes lists the nodes of the side that the pods come to.
func nodes(ctx context.Context, i check.Inspection) ([]corev1.Node, error) {
	return check.Once(i, nodesKey{}, func() ([]corev1.Node, error) {
		var list corev1.NodeList
		if err := i.On[i.To()].List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing the nodes of the %s: %w", i.To(), err)
		}
		return list.Items, nil
	})
}

// placed asks for every pod. One that no node takes is left out, and the others are asked for without it.
func placed(i check.Inspection, q question, w *scheduling.World) (out []check.Finding) {
	for {
		v := scheduling.Ask(w, q.Question)
		switch v.Outcome {
		case scheduling.Fits:
			return out
		case scheduling.Stuck:
			f := of(i, q, v)
			if alone := q.where(func(k int) bool { return k == v.Pod }); scheduling.Ask(w, alone.Question).Outcome == scheduling.Fits {
				f.Saw += before(q, v)
			}
			out, q = append(out, f), q.where(func(k int) bool { return k != v.Pod })
			continue
		case scheduling.Depends:
			f := of(i, q, v)
			if f.Saw = "it depends on the nodes that the scheduler chooses: " + v.Why + before(q, v); v.Evicts {
				f.Saw = "it depends on the scheduler, which may evict pods of a lower priority for it: " + v.Why
			}
			f.Want, f.Remedy = "a node that can take it, whatever the scheduler chooses", "free or add nodes, or loosen the rules of the pods with --patch; or --ignore nodes-fit, and be ready to move a pod out of the way"
			out = append(out, f)
		case scheduling.Unknown:
			out = append(out, check.Finding{
				Object: i.Name(i.To()), Saw: "there are more ways to place its pods than were tried", Want: "to know that each finds a node",
				Remedy: "look yourself whether nodes, rules and room let every pod in, then --ignore nodes-fit",
			})
		}
		return out
	}
}

// of is the finding about the pod that gets no node.
func of(i check.Inspection, q question, v scheduling.Verdict) check.Finding {
	return check.Finding{
		Object: fmt.Sprintf("pod %s on the %s (%s)", q.names[v.Pod], i.To(), i.Plan.On(i.To()).Context), Saw: v.Why, Want: "a node that can take it",
		Remedy: "add nodes or free some, or --ignore nodes-fit where nodes come on demand",
	}
}

// before says which pods come before one.
func before(q question, v scheduling.Verdict) string {
	var out []string
	for _, c := range v.After {
		out = append(out, q.names[c.Pod]+" on "+c.Node)
	}
	if len(out) == 0 {
		return ""
	}
	return " (with " + check.Few(out) + ")"
}

// unjudged are the findings about pods that no rule known here places.
func unjudged(i check.Inspection, q question) []check.Finding {
	var saw []string
	if name := q.spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName && q.spec.NodeName == "" {
		saw = append(saw, fmt.Sprintf("scheduler %s places its pods, and its rules are not known", name))
	}
	var gates []string
	for _, g := range q.spec.SchedulingGates {
		gates = append(gates, g.Name)
	}
	if len(gates) > 0 {
		saw = append(saw, fmt.Sprintf("its pods wait for scheduling gates (%s), and who lifts them is not known", strings.Join(gates, ", ")))
	}
	if len(q.spec.ResourceClaims) > 0 {
		saw = append(saw, "its pods ask for devices by resource claims, which only the scheduler can place")
	}
	var out []check.Finding
	for _, s := range saw {
		out = append(out, check.Finding{
			Object: i.Name(i.To()), Saw: s, Want: "to know that each pod finds a node on the " + string(i.To()),
			Remedy: "see to it yourself that they do, for example with a pod like these, then --ignore nodes-fit",
		})
	}
	return out
}

// unread are the findings about what was not read. Room alone is worth a warning. What the pods ask for by a rule is not.
func (c crowd) unread(i check.Inspection, q question) (out []check.Finding) {
	object := fmt.Sprintf("nodes of the %s (%s)", i.To(), i.Plan.On(i.To()).Context)
	if c.partly {
		f := check.Finding{
			Level: check.Warn, Object: object, Saw: "you may not list the pods that run there", Want: "to be able to see how full they are",
			Remedy: "let a user who may list them check, or ask for `list` on pods in all namespaces",
		}
		if what := q.strangers(); what != "" {
			f.Level, f.Saw, f.Want = check.Fail, f.Saw+", and the pods of the set have "+what, "to know which nodes that leaves"
			f.Remedy += "; or look yourself, then --ignore nodes-fit"
		}
		out = append(out, f)
	}
	if c.unlabelled {
		out = append(out, check.Finding{
			Level: check.Fail, Object: "namespaces of the " + string(i.To()), Saw: "you may not list them, and the pods of the set have rules about pods of namespaces with certain labels", Want: "to know which nodes that leaves",
			Remedy: "ask for `list` on namespaces, or look yourself, then --ignore nodes-fit",
		})
	}
	return out
}

// strangers says which rules of the pods are about pods of other namespaces, or "".
func (q question) strangers() string {
	var out []string
	if len(q.pod.Ports()) > 0 {
		out = append(out, "ports of the node")
	}
	if q.pod.Elsewhere() {
		out = append(out, "pod affinity or anti-affinity to pods of other namespaces")
	}
	return strings.Join(out, " and ")
}

// where is the question about those pods alone of which that is so.
func (q question) where(asked func(pod int) bool) question {
	out, n := question{pod: q.pod, spec: q.spec}, 0
	out.Together = q.Together
	for _, wave := range q.Waves {
		next := scheduling.Wave{Leaves: wave.Leaves}
		for _, a := range wave.Arrives {
			if asked(n) {
				next.Arrives, out.names = append(next.Arrives, a), append(out.names, q.names[n])
			}
			n++
		}
		out.Waves = append(out.Waves, next)
	}
	return out
}

// nodesKey is the key of check.Once for these nodes.
type nodesKey struct{}
