//go:build forgets

// Package forgets does not compile: each line that says so is a deletion that nobody has looked at its API server for.
package forgets

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/writes"
)

func forgets(ctx context.Context, c client.Client, on clusters.Pair, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, pod *corev1.Pod, set *appsv1.StatefulSet, made *corev1.ConfigMap) {
	volume, _ := on.Live().Volume(ctx, "source", pv.Name)
	_ = writes.DeleteClaim(ctx, c, claim, volume)
	_ = writes.Delete(ctx, c, made)

	_ = writes.Delete(ctx, c, claim)                                  // does not compile
	_ = writes.Delete(ctx, c, pv)                                     // does not compile
	_ = writes.Delete(ctx, c, pod)                                    // does not compile
	_ = writes.Delete(ctx, c, set)                                    // does not compile
	_ = writes.Delete(ctx, c, client.Object(made))                    // does not compile
	_ = writes.DeleteClaim(ctx, c, claim, pv)                         // does not compile
	_ = writes.DeletePod(ctx, c, pod, volume)                         // does not compile
	_, _ = reads.Get(ctx, c, client.ObjectKeyFromObject(pv), pv)      // does not compile
	_ = reads.Seen[*corev1.PersistentVolume]{object: pv, asked: true} // does not compile
	_ = c.Get(ctx, client.ObjectKeyFromObject(pv), pv, reads.fresh{}) // does not compile
}
