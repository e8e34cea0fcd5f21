package writes

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
)

// This file deletes what cannot be recreated as it was. Each deletion is conditional on its object, like any other. Besides, it
// depends on an object that no API server compares for it: it takes what a live read has just shown of that one.

// errUnread is the fault of a caller that made up what a live read should have shown.
var errUnread = errors.New("nothing is deleted: what it depends on was not read from its API server")

// DeleteClaim deletes a claim that is bound, or was meant for a volume. The volume must be Retain: with Delete, the disk
// would go with the claim (S4).
func DeleteClaim(ctx context.Context, c client.Writer, claim *corev1.PersistentVolumeClaim, volume reads.Seen[*corev1.PersistentVolume]) error {
	if !volume.Asked() {
		return errUnread
	}
	if pv := volume.Object(); pv != nil && pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return fmt.Errorf("claim %s is not deleted: its volume %s has reclaim policy %s, and the disk would go too", claim.Name, pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	return exactly(ctx, c, claim)
}

// DeleteUnbound deletes a claim that has no volume. If it gets one meanwhile, it has changed, and stays.
func DeleteUnbound(ctx context.Context, c client.Writer, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName != "" {
		return errUnread
	}
	return exactly(ctx, c, claim)
}

// DeleteVolume deletes a volume object that is Retain. kept is the other object for its disk, which stays.
func DeleteVolume(ctx context.Context, c client.Writer, volume *corev1.PersistentVolume, kept reads.Seen[*corev1.PersistentVolume]) error {
	if kept.Object() == nil {
		return errUnread
	}
	return exactly(ctx, c, volume)
}

// DeletePod deletes a pod with its own grace period. Its set must not have it in its range: the controller would
// recreate it.
func DeletePod(ctx context.Context, c client.Writer, pod *corev1.Pod, set reads.Seen[*appsv1.StatefulSet]) error {
	if set.Object() == nil {
		return errUnread
	}
	return exactly(ctx, c, pod)
}

// DeleteSet deletes a set that has no ordinals left. kept is the set that has them.
func DeleteSet(ctx context.Context, c client.Writer, set *appsv1.StatefulSet, kept reads.Seen[*appsv1.StatefulSet]) error {
	if kept.Object() == nil {
		return errUnread
	}
	return exactly(ctx, c, set, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// Orphan deletes a set without its pods. kept is where the set is stored that it is recreated from.
func Orphan(ctx context.Context, c client.Writer, set *appsv1.StatefulSet, kept reads.Seen[*corev1.ConfigMap]) error {
	if kept.Object() == nil {
		return errUnread
	}
	return exactly(ctx, c, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))
}

// DeleteCopy deletes a copy. The original is still there: with it gone, the content would be nowhere.
func DeleteCopy(ctx context.Context, c client.Writer, seen client.Object, original reads.Seen[client.Object]) error {
	if original.Object() == nil {
		return errUnread
	}
	return exactly(ctx, c, seen, client.PropagationPolicy(metav1.DeletePropagationBackground))
}
