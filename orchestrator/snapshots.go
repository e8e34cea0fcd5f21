package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// stale is the age at which a snapshot no longer counts as one of before the move.
const stale = 24 * time.Hour

// snapshotted warns of claims without a recent VolumeSnapshot, where the source cluster
// has such. The move copies nothing and deletes no data; a second copy is for everything
// else that can go wrong in a night.
func snapshotted(ctx context.Context, i inspection) ([]Finding, error) {
	snapshots := &unstructured.UnstructuredList{}
	snapshots.SetGroupVersionKind(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotList"})
	err := i.on[plans.Source].List(ctx, snapshots, client.InNamespace(i.plan.Source.Namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil // backups are made in other ways there
	}
	if err != nil {
		return unseen(err, "snapshots of namespace "+i.plan.Source.Namespace, "volumesnapshots.snapshot.storage.k8s.io")
	}
	recent := recentlySnapped(snapshots.Items, time.Since)
	var without []string
	all := 0
	for o := range i.ordinals.All() {
		for _, c := range i.plan.Moved() {
			all++
			if name := i.plan.ClaimName(c.Template, o); !recent[name] {
				without = append(without, name)
			}
		}
	}
	if len(without) == 0 {
		return nil, nil
	}
	return []Finding{{
		Level: Warn, Object: i.name(plans.Source), Saw: fmt.Sprintf("%d of %d claims have no VolumeSnapshot younger than %d hours that is ready: %s", len(without), all, int(stale.Hours()), strings.Join(without, ", ")),
		Want: "a second copy of the data from before the move", Remedy: "make snapshots, or see that there is another backup",
	}}, nil
}

// recentlySnapped names the claims of which there is a snapshot that is ready and not
// stale.
func recentlySnapped(snapshots []unstructured.Unstructured, since func(time.Time) time.Duration) map[string]bool {
	out := map[string]bool{}
	for _, s := range snapshots {
		claim, _, _ := unstructured.NestedString(s.Object, "spec", "source", "persistentVolumeClaimName")
		ready, _, _ := unstructured.NestedBool(s.Object, "status", "readyToUse")
		at, _, _ := unstructured.NestedString(s.Object, "status", "creationTime")
		var taken metav1.Time
		if taken.UnmarshalQueryParameter(at) != nil || taken.IsZero() {
			continue
		}
		out[claim] = out[claim] || ready && since(taken.Time) < stale
	}
	return out
}
