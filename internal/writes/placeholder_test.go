package writes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What deletes a pod at once deletes no pod but a placeholder, and only that.
func TestOnlyAPlaceholderIsDeletedAsOne(t *testing.T) {
	claim := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-3"}}}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		goes   bool
	}{
		"a placeholder": {func(*corev1.Pod) {}, true},
		"of a set": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: new(true)}}
		}, false},
		"without label": {func(p *corev1.Pod) { p.Labels = nil }, false},
		"with a claim":  {func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, claim) }, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "mall", Name: "web-3-place", UID: "u", Labels: map[string]string{"place": "web"},
		}}
		there := fake.NewClientBuilder().WithObjects(pod.DeepCopy()).Build()
		seen := &corev1.Pod{}
		if err := there.Get(t.Context(), client.ObjectKeyFromObject(pod), seen); err != nil {
			t.Fatal(err)
		}
		c.change(seen)
		err := DeletePlaceholder(t.Context(), there, seen, "place")
		if gone := client.IgnoreNotFound(there.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})) == nil && there.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}) != nil; gone != c.goes || (err == nil) != c.goes {
			t.Errorf("%s: gone %t, %v", name, gone, err)
		}
	}
}
