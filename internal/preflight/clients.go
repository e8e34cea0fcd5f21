package preflight

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// bridged returns the Services of clients that a plan can keep served on both sides, of either side. Without the right to
// list Services or pods there are none: the check says so.
func bridged(ctx context.Context, on clusters.Clusters, in build.Inputs) ([]string, error) {
	oneCluster := in.Source.Cluster == in.Destination.Cluster
	if !in.Names.Reaches(oneCluster) {
		return nil, nil
	}
	names := map[string]bool{}
	for _, side := range plans.Sides() {
		at, err := clientsOn(on, in, side)
		if err != nil {
			return nil, err
		}
		found, err := at.Services(ctx)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		for _, s := range found {
			names[s.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// clientsOn returns where the Services of clients of a side are looked for. The set of the destination is what the plan makes of
// the source's.
func clientsOn(on clusters.Clusters, in build.Inputs, side plans.Side) (clients.Side, error) {
	at := clients.Side{On: on[side], Namespace: in.Source.Namespace, Set: in.Set, Ordinals: plans.SliceOf(in.Set)}
	if side == plans.Destination {
		at.Namespace = in.Destination.Namespace
		var err error
		if at.Set, err = in.DestinationSet(); err != nil {
			return at, err
		}
	}
	return at, nil
}
