package owners

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// A restarter is a program that changes the pod template of a set by itself, so that every pod is replaced.
type restarter struct {
	// mark is the beginning of the keys of its labels and annotations, also in a domain below.
	mark, name, does string
}

// restarters lists those whose marks are known.
func restarters() []restarter {
	const config = "restarts the pods when a ConfigMap or Secret that they use changes, or appears as a copy of the move"
	return []restarter{
		{"reloader.stakater.com/", "Reloader", config},
		{"restarter.stackable.tech/", "the restart controller of Stackable", config},
		{"wave.pusher.com/", "Wave", config},
		{"operator.1password.io/auto-restart", "the operator of 1Password", config},
		{"keel.sh/", "Keel", "replaces the image when a registry has a newer one"},
		{"checksum/", "a chart with checksums of its configuration", "restarts the pods when the chart is applied with another configuration"},
	}
}

// Restarters warns of programs that change the pod template by themselves. While a wave is away both sets are pinned, and
// nothing is restarted beside it (S2). But a restart begins before the next wave, which waits for its end (S13), and where
// it gives the sets different templates the user has to make them alike (S18).
func Restarters(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for side, set := range i.Sets {
		for _, r := range restarters() {
			keys := r.marks(set)
			if len(keys) == 0 {
				continue
			}
			out = append(out, check.Finding{
				Level: check.Warn, Object: i.Name(side), Saw: fmt.Sprintf("%s: %s %s", strings.Join(keys, ", "), r.name, r.does), Want: "no restart during the move",
				Remedy: "a restart waits while an ordinal is away, and the next ordinal waits until it is over; to have none, stop that program for the time of the move, or take its marks off",
			})
		}
	}
	return out, nil
}

// marks returns the keys of the labels and annotations by which a restarter knows a set, of the set and of its pods.
func (r restarter) marks(set *appsv1.StatefulSet) []string {
	keys := map[string]bool{}
	for _, m := range []map[string]string{set.Labels, set.Annotations, set.Spec.Template.Labels, set.Spec.Template.Annotations} {
		for k, v := range m {
			if v != "false" && (strings.HasPrefix(k, r.mark) || strings.Contains(k, "."+r.mark)) {
				keys[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// partition is the field that pins the rolling updates of a set while a wave is away, as a JSON pointer.
const partition = "/spec/updateStrategy/rollingUpdate/partition"

// declares reports whether the manifest of a set says which partition it has: that of a server-side apply, or the one that
// kubectl notes. What the API server fills in is no writer's.
func declares(set *appsv1.StatefulSet) bool {
	for _, e := range set.ManagedFields {
		if e.Operation == metav1.ManagedFieldsOperationApply && ownsPartition(e) {
			return true
		}
	}
	var applied appsv1.StatefulSet
	if weight.Unmarshal([]byte(set.Annotations[corev1.LastAppliedConfigAnnotation]), &applied) != nil {
		return false
	}
	r := applied.Spec.UpdateStrategy.RollingUpdate
	return r != nil && r.Partition != nil
}

func ownsPartition(e metav1.ManagedFieldsEntry) bool {
	return e.FieldsV1 != nil && plans.Owns(e.FieldsV1.GetRawBytes(), []string{"spec", "updateStrategy", "rollingUpdate", "partition"})
}
