package writes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeletePlaceholder deletes the pod of this program that holds the place of an ordinal, at once: nothing runs in it that
// could lose anything, and its room is needed. It refuses every pod without the label, with a claim, or with a controller.
func DeletePlaceholder(ctx context.Context, c client.Writer, pod *corev1.Pod, label string) error {
	if pod.Labels[label] == "" || len(claimsOf(pod)) > 0 || metav1.GetControllerOf(pod) != nil {
		return fmt.Errorf("pod %s/%s is no placeholder, and is not deleted", pod.Namespace, pod.Name)
	}
	return exactly(ctx, c, pod, client.GracePeriodSeconds(0))
}

// TryDeletePlaceholder sends that deletion as a dry run.
func TryDeletePlaceholder(ctx context.Context, c client.Writer, pod *corev1.Pod) error {
	return TryDelete(ctx, c, pod, client.GracePeriodSeconds(0))
}

func claimsOf(pod *corev1.Pod) (out []string) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}
