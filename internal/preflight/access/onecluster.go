package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// OneCluster requires that two connections to what counts as one cluster reach one cluster. A cluster is known by the UID
// of its namespace kube-system. One that was made from an etcd snapshot of another has the same, and the same objects with
// the same UIDs. So it asks what a copy cannot share: the revision of the store. Lists that are read one after the other,
// through one connection and the other, have versions that never go back if one store answers, whichever address, API
// server and user they come through. Two stores count for themselves. Versions that go back prove that they are two.
func OneCluster(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if !i.Plan.OneCluster() {
		return nil, nil
	}
	names := fmt.Sprintf("contexts %q and %q", i.Plan.Source.Context, i.Plan.Destination.Context)
	const want = "one cluster behind both, or two of which each has a UID of its own"
	last := ""
	for range 2 {
		for _, side := range plans.Sides() {
			now, err := clusters.Revision(ctx, i.On.Live(side), i.Plan.On(side).Namespace)
			if apierrors.IsForbidden(err) {
				return check.Unseen(err, names, "the pods of "+i.Plan.On(side).Namespace)
			}
			if err != nil {
				return nil, err
			}
			if last == "" && now != "" {
				last = now
				continue
			}
			order, alike := compared(now, last)
			if !alike {
				return []check.Finding{{
					Level: check.Warn, Object: names, Saw: fmt.Sprintf("lists of pods have the versions %q and %q, which cannot be compared", last, now), Want: want,
					Remedy: "make sure that neither cluster was made from a backup of the other one's etcd",
				}}, nil
			}
			if order < 0 {
				return []check.Finding{{
					Object: names, Want: want,
					Saw:    fmt.Sprintf("both have the UID %s (of namespace %s), but a list of pods through one of them has version %s, and an earlier one through the other has %s: they are two clusters, and one was made from a backup of the other one's etcd, or both from the same", i.Plan.Source.Cluster, i.Plan.Source.Identity(), now, last),
					Remedy: "name contexts of one cluster, or move to a cluster that was not made from such a backup: objects of these two cannot be told apart",
				}}, nil
			}
			last = now
		}
	}
	return nil, nil
}

// compared returns which of two versions is later, and whether that can be told.
func compared(a, b string) (order int, alike bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}
