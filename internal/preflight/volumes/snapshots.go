package volumes

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

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// maxSnapshotAge is the age from which a snapshot no longer counts as recent.
const maxSnapshotAge = 24 * time.Hour

// Snapshots warns of claims without a recent VolumeSnapshot, where the source cluster has VolumeSnapshots.
// The move copies nothing and deletes no data; the snapshot is a second copy against every other failure.
func Snapshots(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	snapshots, err := volumeSnapshots(ctx, i)
	if meta.IsNoMatchError(err) {
		return nil, nil // backups are made in other ways there
	}
	if err != nil {
		return check.Unseen(err, "snapshots of namespace "+i.Plan.Source.Namespace, "volumesnapshots.snapshot.storage.k8s.io")
	}
	recent := recentlySnapped(snapshots, time.Since)
	var without []string
	all := 0
	for o := range i.Ordinals.All() {
		for _, c := range i.Plan.Moved() {
			all++
			if name := i.Plan.ClaimName(plans.Source, c.Template, o); !recent[name] {
				without = append(without, name)
			}
		}
	}
	if len(without) == 0 {
		return nil, nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: i.Name(plans.Source), Saw: fmt.Sprintf("%d of %d claims have no VolumeSnapshot younger than %d hours that is ready: %s", len(without), all, int(maxSnapshotAge.Hours()), strings.Join(without, ", ")),
		Want: "a second copy of the data from before the move", Remedy: "make snapshots, or see that there is another backup",
	}}, nil
}

// volumeSnapshots lists the VolumeSnapshots of the source's namespace.
func volumeSnapshots(ctx context.Context, i check.Inspection) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotList"})
	err := i.On[plans.Source].List(ctx, list, client.InNamespace(i.Plan.Source.Namespace))
	return list.Items, err
}

// recentlySnapped returns, as true, the claims that have a snapshot which is ready and not stale.
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
		out[claim] = out[claim] || ready && since(taken.Time) < maxSnapshotAge
	}
	return out
}

// ClaimsKept refuses claims with a finalizer of another controller, and names the snapshots that are not
// ready: a snapshot that never becomes ready keeps its claim for good.
func ClaimsKept(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for o := range i.Ordinals.All() {
		for _, c := range i.Plan.Moved() {
			name := i.Plan.ClaimName(plans.Source, c.Template, o)
			claim, err := i.Claim(ctx, plans.Source, name)
			if err != nil {
				return nil, err
			}
			if claim == nil || storage.KeptBy(claim) == "" {
				continue // the check claims-bound reports a missing claim
			}
			out = append(out, check.Finding{
				Object: "claim " + name, Saw: "it is kept by " + storage.KeptBy(claim) + unready(ctx, i, name), Want: "no finalizer but " + storage.PVCProtection,
				Remedy: "wait for what keeps it (a snapshot, a replication, a clone), or delete that",
			})
		}
	}
	return out, nil
}

// unready names the VolumeSnapshots of a claim that are not ready, as far as they may be read.
func unready(ctx context.Context, i check.Inspection, claim string) string {
	snapshots, err := volumeSnapshots(ctx, i)
	if err != nil {
		return "" // the finding is the same without
	}
	var out []string
	for _, s := range snapshots {
		of, _, _ := unstructured.NestedString(s.Object, "spec", "source", "persistentVolumeClaimName")
		ready, _, _ := unstructured.NestedBool(s.Object, "status", "readyToUse")
		if of == claim && !ready {
			out = append(out, s.GetName())
		}
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf(" (VolumeSnapshots that are not ready: %s)", strings.Join(out, ", "))
}
