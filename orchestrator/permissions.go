package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Right is a set of verbs on one resource or subresource (such as pods/exec), in the namespace of the side or the one
// that is named, or, if ClusterWide, everywhere.
type Right struct {
	Group, Resource string
	Verbs           []string
	Namespace       string
	ClusterWide     bool
}

// Rights lists what carrying a plan out needs on one side, walking back and
// cleaning up included, but for where the plan is kept (ForRecords). There are no wildcards, and no pod is ever written.
func Rights(p *plans.Plan, side plans.Side) []Right {
	watched := []string{"get", "list", "watch"}
	change := append(slices.Clone(watched), "create", "update", "delete")
	out := []Right{
		{Resource: "pods", Verbs: watched},
		{Group: resourceOf(p.On(side)).Group, Resource: resourceOf(p.On(side)).Resource, Verbs: change},
		{Group: "policy", Resource: "poddisruptionbudgets", Verbs: change},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: []string{"list"}},
		{Resource: "namespaces", Verbs: []string{"get"}, ClusterWide: true}, // kube-system identifies the cluster
	}
	if p.HasVolumes() {
		volumes := Right{Resource: "persistentvolumes", Verbs: append(slices.Clone(watched), "update"), ClusterWide: true}
		if !p.OneCluster() || len(p.Shared) > 0 {
			volumes.Verbs = append(volumes.Verbs, "create", "delete")
		}
		out = append(out, volumes,
			Right{Resource: "persistentvolumeclaims", Verbs: change},
			Right{Group: "storage.k8s.io", Resource: "volumeattachments", Verbs: watched, ClusterWide: true},
			Right{Resource: "nodes", Verbs: watched, ClusterWide: true})
		if !p.OneCluster() {
			out = append(out, Right{Group: "storage.k8s.io", Resource: "storageclasses", Verbs: []string{"get"}, ClusterWide: true})
		}
	}
	if side == plans.Destination && !p.OneCluster() && p.HasVolumes() {
		out = append(out, Right{Group: "storage.k8s.io", Resource: "csidrivers", Verbs: []string{"get"}, ClusterWide: true})
	}
	return slices.Concat(out, forDependencies(p, side), forNames(p, side), forGates(p))
}

// ForRecords are the rights to keep plan, journal and Lease in the home namespace.
func ForRecords() []Right {
	return []Right{
		{Resource: "configmaps", Verbs: []string{"get", "create", "update", "delete"}},
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "create", "update", "delete"}},
	}
}

// forGates is the same on both sides: a plan that is walked back asks the gates of the
// way there in the other direction.
func forGates(p *plans.Plan) []Right {
	var out []Right
	for _, r := range []struct {
		needed func(plans.Gate) bool
		right  Right
	}{
		{func(g plans.Gate) bool { return g.Exec != nil }, Right{Resource: "pods/exec", Verbs: []string{"create"}}},
		{func(g plans.Gate) bool { return g.HTTPGet != nil }, Right{Resource: "pods/proxy", Verbs: []string{"get"}}},
		{plans.Gate.IsJob, Right{Group: "batch", Resource: "jobs", Verbs: []string{"get", "list", "watch", "create", "update", "delete"}}},
	} {
		if p.Asks(r.needed) {
			out = append(out, r.right)
		}
	}
	return out
}

func forNames(p *plans.Plan, side plans.Side) []Right {
	var out []Right
	if len(p.Exports()) > 0 {
		out = append(out, Right{Group: mcsv1alpha1.GroupName, Resource: "serviceexports", Verbs: []string{"get", "list", "watch", "create", "update", "delete"}})
	}
	for _, d := range p.Directories() {
		if d.On != side {
			continue
		}
		services := []string{"list", "watch"}
		if d.Lists == "" {
			services = []string{"get", "list", "watch", "create", "delete"}
		}
		out = append(out, Right{Resource: "services", Verbs: services, Namespace: d.Namespace},
			Right{Group: "discovery.k8s.io", Resource: "endpointslices", Verbs: []string{"get", "list", "watch", "create", "update", "delete"}, Namespace: d.Namespace})
	}
	return out
}

func forDependencies(p *plans.Plan, side plans.Side) []Right {
	var out []Right
	for _, d := range p.Dependencies {
		verbs := []string{"get"}
		if side == plans.Destination && d.Required == "" {
			verbs = []string{"get", "create", "update", "delete"}
		}
		resource := strings.ToLower(d.Kind) + "s"
		k := slices.IndexFunc(out, func(r Right) bool { return r.Resource == resource })
		switch {
		case k < 0:
			out = append(out, Right{Resource: resource, Verbs: verbs})
		case len(verbs) > len(out[k].Verbs):
			out[k].Verbs = verbs
		}
	}
	return out
}

// permissions asks the API servers of both sides for every right, as the very
// user who will write.
func permissions(ctx context.Context, i inspection) ([]Finding, error) {
	var out []Finding
	for _, side := range plans.Sides() {
		rights := Rights(i.plan, side)
		if side == plans.Destination && !i.detached { // an orchestrator has them where it runs
			rights = slices.Concat(ForRecords(), rights)
		}
		denied := make([][]string, len(rights))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for k, r := range rights {
			g.Go(func() error {
				for _, verb := range r.Verbs {
					ok, err := allowed(ctx, i.plan, i.on, side, r, verb)
					if err != nil {
						return err
					}
					if !ok {
						denied[k] = append(denied[k], verb)
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for k, r := range rights {
			if len(denied[k]) > 0 {
				out = append(out, Finding{
					Object: fmt.Sprintf("%s on the %s (%s)", r.where(i.plan, side), side, i.plan.On(side).Context),
					Saw:    "you may not " + strings.Join(denied[k], ", "), Want: "to be allowed " + strings.Join(r.Verbs, ", "),
					Remedy: "ask for a Role with these verbs",
				})
			}
		}
	}
	return out, nil
}

func (r Right) where(p *plans.Plan, side plans.Side) string {
	name := r.Resource
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.ClusterWide {
		return name + " (cluster-wide)"
	}
	return name + " in namespace " + r.in(p, side)
}

func (r Right) in(p *plans.Plan, side plans.Side) string {
	if r.Namespace != "" {
		return r.Namespace
	}
	return p.On(side).Namespace
}

func allowed(ctx context.Context, p *plans.Plan, on Clusters, side plans.Side, r Right, verb string) (bool, error) {
	ask := &authorizationv1.SelfSubjectAccessReview{}
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	ask.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Group: r.Group, Resource: resource, Subresource: subresource, Verb: verb}
	if !r.ClusterWide {
		ask.Spec.ResourceAttributes.Namespace = r.in(p, side)
	}
	if err := on[side].Create(ctx, ask); err != nil {
		return false, fmt.Errorf("asking the %s what you may do: %w", side, err)
	}
	return ask.Status.Allowed, nil
}
