package slicecontroller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// Of the pods of other controllers only small metadata is kept. Pods that a set
// has or may adopt are kept whole.
func TestPodsOfOthersTakeLittleRoom(t *testing.T) {
	yes := true
	for kind, whole := range map[string]bool{"": true, "StatefulSetSlice": true, "ReplicaSet": false, "StatefulSet": false, "Job": false} {
		p := pod("web-0")
		p.UID, p.ResourceVersion, p.Labels = "a", "5", map[string]string{"app": "web"}
		p.Annotations = map[string]string{"long": "text"}
		p.Spec.Containers = []corev1.Container{{Name: "web", Image: "web", Env: []corev1.EnvVar{{Name: "A", Value: "a"}}}}
		p.Status.Phase = corev1.PodRunning
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "web", UID: "set", Controller: &yes}}
		}
		out, err := slimPod(sliced(core.Traits{}).gvk)(p.DeepCopy())
		got, ok := out.(*corev1.Pod)
		if err != nil || !ok {
			t.Fatalf("%s: %v", kind, err)
		}
		if equality.Semantic.DeepEqual(got, p) != whole {
			t.Errorf("of a pod of a %q is kept %+v", kind, got)
		}
		if !whole && (len(got.Spec.Containers) > 0 || got.Annotations != nil || got.Status.Phase != "") {
			t.Errorf("of a pod of a %q is kept %+v", kind, got)
		}
		if got.UID != p.UID || got.ResourceVersion != p.ResourceVersion || !metav1.HasAnnotation(p.ObjectMeta, "long") || metav1.GetControllerOf(got) == nil != (kind == "") {
			t.Errorf("of a pod of a %q is lost whose it is: %+v", kind, got)
		}
	}
}
