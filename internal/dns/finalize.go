package dns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// IgnoreClients is the word with which a user lets Services of clients lose their last endpoint: the name of the check.
const IgnoreClients = "clients"

// Deserted returns the Services of clients of the source that have endpoints by the bridge alone, with what points at them:
// nothing answers their clients once the slices are gone. It reads live, and what points at them as far as it may be read.
func Deserted(ctx context.Context, p *plans.Plan, source client.Client) ([]string, error) {
	var out []string
	var points *clients.Pointers
	for _, d := range p.Directories() {
		if d.Client == "" || d.Lists != plans.Source {
			continue
		}
		var all discoveryv1.EndpointSliceList
		if err := source.List(ctx, &all, client.InNamespace(d.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: d.Client}); err != nil {
			return nil, fmt.Errorf("listing the EndpointSlices of Service %s/%s on the source: %w", d.Namespace, d.Client, err)
		}
		if own, ours := ready(all.Items, false), ready(all.Items, true); own > 0 || ours == 0 {
			continue
		}
		if points == nil {
			found, err := clients.Point(ctx, source, d.Namespace)
			if err != nil {
				return nil, err
			}
			points = &found
		}
		name := fmt.Sprintf("Service %s/%s", d.Namespace, d.Client)
		if by := points.Of(d.Client); by != "" {
			name += " (behind " + by + ")"
		}
		out = append(out, name)
	}
	return out, nil
}

// ready counts the ready endpoints in the slices of plans, or in those of others.
func ready(all []discoveryv1.EndpointSlice, ofPlans bool) (n int) {
	for k := range all {
		if ofPlan(&all[k]) != ofPlans {
			continue
		}
		for _, e := range all[k].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				n++
			}
		}
	}
	return n
}

// Refusal says why a plan with such Services is not finalized as it is, and what to do.
func Refusal(deserted []string) string {
	return fmt.Sprintf("%s would have no endpoint when the bridge goes, and clients may use it still: switch them to the destination and delete it there, "+
		"finalize with --keep-names, which keeps it served, or with --ignore %s", strings.Join(deserted, " and "), IgnoreClients)
}

// Served returns the look that holds a finalize, before its first deletion, while a Service of clients would lose its last
// endpoint with the bridge. The user may keep the names, or say that it does not matter.
func Served(p *plans.Plan, on map[plans.Side]client.Client, ignored func() []string) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		if m.To() != plans.Destination || m.KeepNames || m.Began || slices.Contains(ignored(), IgnoreClients) {
			return plans.Done(), nil
		}
		deserted, err := Deserted(ctx, p, on[plans.Source])
		if err != nil || len(deserted) == 0 {
			return plans.Done(), err
		}
		return plans.Stop(reasons.ClientsDeserted, Refusal(deserted)), nil
	}
}
