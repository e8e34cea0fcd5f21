package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// twins returns the Services of clients of the source that the destination lacks, and that would find the pods there: the
// plan makes them. Without the right to list Services or pods there are none: the check says so.
func twins(ctx context.Context, on clusters.Clusters, in build.Inputs) (out []plans.Dependency, err error) {
	if !in.Names.Twins {
		return nil, nil
	}
	at := map[plans.Side]clients.Side{}
	for _, side := range plans.Sides() {
		if at[side], err = clientsOn(on, in, side); err != nil {
			return nil, err
		}
	}
	here, there := at[plans.Source], at[plans.Destination]
	found, err := here.Services(ctx)
	var all corev1.ServiceList
	if err == nil {
		err = there.On.List(ctx, &all, client.InNamespace(there.Namespace))
	}
	if err != nil {
		return nil, check.IgnoreForbidden(err)
	}
	p := &plans.Plan{Source: in.Source, Destination: in.Destination}
	for _, s := range found {
		lost := clients.May(&s.Service, here.Set, here.Ordinals) && !clients.May(&s.Service, there.Set, there.Ordinals) // by a patch
		if lost || named(all.Items, s.Name) != nil || slices.ContainsFunc(in.Dependencies, func(d plans.Dependency) bool { return d.Kind == "Service" && d.Name == s.Name }) {
			continue
		}
		out = append(out, plans.Dependency{Kind: "Service", Name: s.Name, Twin: &plans.Twin{LeftOut: copies.LeftOut(p, &s.Service)}})
	}
	return out, nil
}

func named(all []corev1.Service, name string) *corev1.Service {
	if k := slices.IndexFunc(all, func(s corev1.Service) bool { return s.Name == name }); k >= 0 {
		return &all[k]
	}
	return nil
}

// twins looks at the Services that the plan makes for clients: what they will not have of their originals, which pods of
// others they would select, and which the plan will not make after all.
func (c clientele) twins(ctx context.Context) (out []check.Finding, err error) {
	var pods *corev1.PodList
	to := c.Plan.Destination.Namespace
	for _, d := range c.Plan.Dependencies {
		if d.Twin == nil {
			continue
		}
		f := check.Finding{Level: check.Warn, Object: fmt.Sprintf("Service %s/%s on the destination", to, d.Name), Want: "a twin of the source's for the cluster alone"}
		from, have := named(c.all[plans.Source], d.Name), named(c.all[plans.Destination], d.Name)
		switch {
		case have != nil && !c.Ours(have):
			f.Saw, f.Remedy = "it is there since the plan was made, by another's hand: the plan leaves it as it is, and no abort deletes it", "see to it that it is meant for the clients of the set; it is bridged if it selects the pods"
		case have != nil:
			continue
		case from == nil:
			f.Saw, f.Remedy = "the source has no such Service any more: no twin is made", "make it on the source again, or make a new plan"
		default:
			if pods == nil {
				pods = &corev1.PodList{}
				if err := c.On[plans.Destination].List(ctx, pods, client.InNamespace(to)); err != nil && !apierrors.IsForbidden(err) {
					return nil, fmt.Errorf("listing the pods of namespace %s: %w", to, err)
				}
			}
			out = append(out, c.wrong(f, from, pods.Items)...)
			continue
		}
		out = append(out, f)
	}
	return out, nil
}

// wrong returns what is wrong with a twin that is to be made.
func (c clientele) wrong(f check.Finding, from *corev1.Service, pods []corev1.Pod) (out []check.Finding) {
	selects := clients.Service{Service: *from}
	for k := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[k])
		if clients.Selects(from, pods[k].Labels) && (owner == nil || !plans.IsSet(owner.Kind) || owner.Name != c.Plan.Destination.Name) {
			selects.Others = append(selects.Others, &pods[k])
		}
	}
	if others := strangers(selects); others != "" {
		bad := f
		bad.Level, bad.Saw = check.Fail, fmt.Sprintf("it would select %s, which is not of the set: its clients would reach that", others)
		bad.Remedy = "make a plan without --twins, and this Service by hand with a selector of the set alone; or --ignore clients"
		out = append(out, bad)
	}
	if left := copies.LeftOut(c.Plan, from); copies.Outward(from) {
		f.Saw = "it is made without " + strings.Join(left, "; ")
		f.Remedy = "make it there yourself before the move if its clients need these: one that is there is left as it is, and bridged; or change it once it is made, and it is yours"
		out = append(out, f)
	}
	return out
}
