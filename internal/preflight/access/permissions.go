package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/parts"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Rights lists what carrying a plan out needs on one side, abort and finalize included, except for the rights
// to the records of the plan (ForRecords). It has no wildcards, and no right to write a pod (ForStranded).
func Rights(p *plans.Plan, side plans.Side) []part.Right {
	scalers := part.Right{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: []string{"list"}}
	return append(parts.Rights(p, side), scalers)
}

// claimSet returns the names of the plan's claims on a side as a set.
func claimSet(p *plans.Plan, side plans.Side) map[string]bool {
	out := map[string]bool{}
	for _, name := range storage.ClaimNames(p, side) {
		out[name] = true
	}
	return out
}

// ForRecords returns the rights to keep plan, journal and Lease in the home namespace.
func ForRecords() []part.Right {
	return []part.Right{
		{Resource: "configmaps", Verbs: []string{"get", "create", "update", "delete"}},
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "create", "update", "delete"}},
	}
}

// ForEvents returns the rights to write Events on the sets of a plan, and to read in those of others why a pod is not
// created. They are not part of Rights: no step depends on them.
func ForEvents() part.Right { return part.Right{Resource: "events", Verbs: []string{"create", "list"}} }

// ForStranded returns the right to delete the pods that the controller of a side's set does not come to. It is not part
// of Rights: without it, the plan waits until another user deletes such a pod.
func ForStranded(p *plans.Plan, side plans.Side) part.Right {
	r := part.Right{Resource: "pods", Verbs: []string{"delete"}}
	for o := range p.Ordinals().All() {
		r.Names = append(r.Names, p.Pod(side, o))
	}
	return r
}

// ForChecks returns the rights by which the checks see what would leave a pod of a side Pending: its quotas, the pods
// that have the room of its nodes, the namespaces that rules mean, how many volumes a node attaches, the classes of claims
// that start empty, the workloads whose pods would have the claims of the set, and the rules of admission about what does
// not exist yet; and those by which a plan finds the Services of clients and what points at them, and what would be another
// one in another namespace. They are not part of Rights: no step depends on them, and a check that may not look warns.
// Between waves a warning bars nothing, so that an orchestrator needs the quotas.
func ForChecks(p *plans.Plan, side plans.Side) []part.Right {
	list := []string{"list"}
	out := []part.Right{{Resource: "resourcequotas", Verbs: list}, {Resource: "services", Verbs: list}}
	out = append(out, part.Right{Group: "networking.k8s.io", Resource: "networkpolicies", Verbs: list})
	for _, rules := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"} {
		out = append(out, part.Right{Group: "admissionregistration.k8s.io", Resource: rules, Verbs: list, ClusterWide: true})
	}
	if len(p.Names.Clients) > 0 {
		out = append(out, part.Right{Group: "networking.k8s.io", Resource: "ingresses", Verbs: list})
		for _, kind := range slices.Sorted(maps.Keys(clients.Routes())) {
			out = append(out, part.Right{Group: clients.Gateway, Resource: strings.ToLower(kind) + "s", Verbs: list})
		}
		out = append(out, part.Right{Group: clients.Multi, Resource: "serviceexports", Verbs: list})
	}
	out = append(out, part.Right{Resource: "pods", Verbs: list, ClusterWide: true}, part.Right{Resource: "namespaces", Verbs: list, ClusterWide: true})
	if len(p.Moved()) > 0 {
		out = append(out, part.Right{Group: "storage.k8s.io", Resource: "csinodes", Verbs: list, ClusterWide: true})
		out = append(out, part.Right{Group: "batch", Resource: "cronjobs", Verbs: list}, part.Right{Group: "batch", Resource: "jobs", Verbs: list},
			part.Right{Group: "apps", Resource: "deployments", Verbs: list}, part.Right{Group: "apps", Resource: "statefulsets", Verbs: list}, part.Right{Group: "apps", Resource: "daemonsets", Verbs: list})
	}
	if side == plans.Destination && len(p.Moved()) < len(p.Claims) {
		classes := part.Right{Group: "storage.k8s.io", Resource: "storageclasses", Verbs: []string{"list"}, ClusterWide: true} // which is the default one
		if p.OneCluster() {
			classes.Verbs = []string{"get", "list"} // between clusters Rights has the other
		}
		out = append(out, classes)
	}
	return out
}

// Permissions asks the API servers of both sides for every right, of the very user who will write.
func Permissions(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Account != "" {
		return ofAccount(ctx, i)
	}
	return ofUser(ctx, i)
}

// lacking returns the verbs of each right that are not allowed. It asks for many rights at once.
func lacking(ctx context.Context, rights []part.Right, allowed func(context.Context, part.Right, string) (bool, error)) ([][]string, error) {
	out := make([][]string, len(rights))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(check.MaxConcurrentRequests)
	for k, r := range rights {
		g.Go(func() (err error) {
			defer plans.RecoverPanic(&err)
			for _, verb := range r.Verbs {
				ok, err := allowed(ctx, r, verb)
				if err != nil {
					return err
				}
				if !ok {
					out[k] = append(out[k], verb)
				}
			}
			return nil
		})
	}
	return out, g.Wait()
}

// ofUser asks for the rights of the user, or of the orchestrator, that asks.
func ofUser(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		rights := Rights(i.Plan, side)
		if i.Midway {
			rights = steps(i, side, rights)
		} else if side == plans.Destination && i.Orchestrated == nil { // an orchestrator has them where it runs
			rights = slices.Concat(ForRecords(), rights)
		}
		if err := nameVolumes(ctx, i, rights); err != nil {
			return nil, err
		}
		denied, err := lacking(ctx, rights, func(ctx context.Context, r part.Right, verb string) (bool, error) {
			return Allowed(ctx, i, side, r, verb)
		})
		if err != nil {
			return nil, err
		}
		stranded := false
		if !i.Midway {
			if stranded, err = Allowed(ctx, i, side, ForStranded(i.Plan, side), "delete"); err != nil {
				return nil, err
			}
		}
		for k := range rights {
			rights[k].Verbs = denied[k]
		}
		out = append(out, missing(i, side, rights, i.Midway || stranded)...)
	}
	return out, nil
}

// steps returns the rights without which a wave would stop with its ordinals down: those that its steps need.
// It leaves out the rights to watch, to read what only checks read, and to keep the journal, which are needed
// before the wave leaves. In one cluster, cluster-wide rights are checked once.
func steps(i check.Inspection, side plans.Side, rights []part.Right) []part.Right {
	var out []part.Right
	for _, r := range rights {
		switch r.Resource {
		case "horizontalpodautoscalers", "namespaces", "storageclasses", "csidrivers":
			continue
		}
		r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool {
			return v == "watch" || r.Resource == "persistentvolumes" && (v == "get" || v == "list") || r.Resource == "nodes" && v == "list" || r.Resource == "volumeattachments" && v == "get"
		})
		if !r.ClusterWide || side == plans.Source || !i.Plan.OneCluster() {
			out = append(out, r)
		}
	}
	return out
}

// nameVolumes fills in the volumes that the rights are about, as far as they may be read.
func nameVolumes(ctx context.Context, i check.Inspection, rights []part.Right) error {
	for k := range rights {
		if rights[k].Resource != "persistentvolumes" {
			continue
		}
		var err error
		if rights[k].Names, err = volumeNames(ctx, i.Plan, i.On); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// nowhere is no name that a namespace can have. So the rules that an API server lists for it are those of
// ClusterRoleBindings alone, and hold in the whole cluster.
const nowhere = "no.namespace"

// Allowed reports whether a verb is allowed. The rules that the API server lists for a namespace, or for the whole
// cluster, are read once. If that list is incomplete, each verb is asked for separately, except where the user may do
// everything.
func Allowed(ctx context.Context, i check.Inspection, side plans.Side, r part.Right, verb string) (bool, error) {
	namespace := nowhere
	if !r.ClusterWide {
		namespace = r.In(i.Plan, side)
	}
	list, err := rules(ctx, i, side, namespace)
	if err != nil {
		return false, err
	}
	if ok := permitted(list.rules, r, verb); ok || list.Complete {
		return ok, nil
	}
	if all, err := everything(ctx, i, side); all || err != nil {
		return all, err
	}
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	attributes := authorizationv1.ResourceAttributes{Group: r.Group, Resource: resource, Subresource: subresource, Verb: verb}
	if !r.ClusterWide {
		attributes.Namespace = r.In(i.Plan, side)
	}
	ok, err := ask(ctx, i, side, attributes)
	if err != nil || ok || r.Nameless(verb) || len(r.Names) == 0 {
		return ok, err
	}
	for _, attributes.Name = range r.Names { // a Role may be limited to them
		if ok, err = ask(ctx, i, side, attributes); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// everything reports whether the user may do everything in a cluster, as its administrators may: one question then
// stands for all others.
func everything(ctx context.Context, i check.Inspection, side plans.Side) (bool, error) {
	return check.Once(i, everythingOn(side), func() (bool, error) {
		return ask(ctx, i, side, authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"})
	})
}

// everythingOn is the key of check.Once for everything.
type everythingOn plans.Side

func ask(ctx context.Context, i check.Inspection, side plans.Side, about authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &about}}
	if err := i.On[side].Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking the %s what you may do: %w", side, err)
	}
	return review.Status.Allowed, nil
}

// Place is a namespace of a side.
type Place struct {
	Side      plans.Side
	Namespace string
}

// Listing has the rules that apply in a namespace, as far as the API server can list them.
type Listing struct {
	rules    []authorizationv1.ResourceRule
	Complete bool
}

func rules(ctx context.Context, i check.Inspection, side plans.Side, namespace string) (Listing, error) {
	return check.Once(i, Place{side, namespace}, func() (Listing, error) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		if err := i.On[side].Create(ctx, review); err != nil {
			return Listing{}, fmt.Errorf("asking the %s what you may do: %w", side, err)
		}
		return Listing{review.Status.ResourceRules, !review.Status.Incomplete && review.Status.EvaluationError == ""}, nil
	})
}

// permitted reports whether the rules allow a verb for all names of a right.
func permitted(rules []authorizationv1.ResourceRule, r part.Right, verb string) bool {
	of := r.Names
	if r.Nameless(verb) || len(of) == 0 {
		of = []string{""}
	}
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	for _, name := range of {
		if !slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
			return has(rule.Verbs, verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, r.Resource) &&
				(len(rule.ResourceNames) == 0 || name != "" && slices.Contains(rule.ResourceNames, name))
		}) {
			return false
		}
	}
	return true
}

// Connection warns where tokens and Secrets would go to an API server that has not proved its identity.
func Connection(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		if c, ok := clusters.Ground(i.On[side]).(clusters.Connection); ok && c.Doubt != "" {
			out = append(out, check.Finding{
				Level: check.Warn, Object: "API server of the " + string(side) + " (" + i.Plan.On(side).Context + ")", Saw: c.Doubt, Want: "TLS and a certificate that is verified",
				Remedy: "put the cluster's certificate authority into the kubeconfig: credentials and Secrets would go to any server that answers",
			})
		}
	}
	return out, nil
}
