package pods

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
)

// A webhook or a policy that lets an object in may also change it. What a claim needs to bind to its volume, and what a pod
// needs to be the set's, must be as it was sent: otherwise the ordinal leaves, and does not arrive.

// alteredClaim is about a claim that admission has changed so that it would not bind to its volume.
func alteredClaim(object string, sent, got *corev1.PersistentVolumeClaim) []check.Finding {
	var saw []string
	changed := func(field, from, to string) {
		if from != to {
			saw = append(saw, fmt.Sprintf("%s from %q to %q", field, from, to))
		}
	}
	changed("spec.storageClassName", class(sent), class(got))
	changed("spec.volumeName", sent.Spec.VolumeName, got.Spec.VolumeName)
	mode := func(c *corev1.PersistentVolumeClaim) string {
		return string(ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
	}
	changed("spec.volumeMode", mode(sent), mode(got))
	changed("spec.accessModes", fmt.Sprint(sent.Spec.AccessModes), fmt.Sprint(got.Spec.AccessModes))
	changed("spec.selector", metav1.FormatLabelSelector(sent.Spec.Selector), metav1.FormatLabelSelector(got.Spec.Selector))
	if asks, wants := sent.Spec.Resources.Requests.Storage(), got.Spec.Resources.Requests.Storage(); wants.Cmp(*asks) > 0 {
		changed("spec.resources.requests.storage", asks.String(), wants.String())
	}
	if len(saw) == 0 {
		return nil
	}
	return []check.Finding{{
		Object: object, Saw: "admission changes " + strings.Join(saw, ", ") + " (dry run)", Want: "a claim that binds to the volume that moves",
		Remedy: "let the owner of the policy or webhook that changes claims leave these alone for the time of the move",
	}}
}

// alteredPod is about a pod that admission has changed so that its set would not own it, or that it would not get its
// volumes.
func alteredPod(object string, set *appsv1.StatefulSet, sent, got *corev1.Pod) []check.Finding {
	var saw []string
	if by := set.Spec.Selector; by != nil {
		selector, err := metav1.LabelSelectorAsSelector(by)
		if err == nil && selector.Matches(labels.Set(sent.Labels)) && !selector.Matches(labels.Set(got.Labels)) {
			saw = append(saw, fmt.Sprintf("its labels to %s, which the selector of the set (%s) does not match", labels.Set(got.Labels), selector))
		}
	}
	for _, v := range sent.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if !slices.ContainsFunc(got.Spec.Volumes, func(o corev1.Volume) bool {
			return o.Name == v.Name && o.PersistentVolumeClaim != nil && o.PersistentVolumeClaim.ClaimName == v.PersistentVolumeClaim.ClaimName
		}) {
			saw = append(saw, fmt.Sprintf("its volume %s, so that it is not claim %s", v.Name, v.PersistentVolumeClaim.ClaimName))
		}
	}
	if len(saw) == 0 {
		return nil
	}
	return []check.Finding{{
		Object: object, Saw: "admission changes " + strings.Join(saw, ", and ") + " (dry run)", Want: "a pod that the set keeps as its own, on the volumes of its ordinal",
		Remedy: "let the owner of the policy or webhook that changes pods leave these alone",
	}}
}
