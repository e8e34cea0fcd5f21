package cluster_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// namespaceOf creates a namespace with a name that no other test uses.
func namespaceOf(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// set returns a StatefulSet "web" with one claim per pod.
func set(namespace, class string, replicas, first int32) *appsv1.StatefulSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas,
			Ordinals: &appsv1.StatefulSetOrdinals{Start: first},
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web",
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim("data", class)},
		},
	}
}

func claim(name, class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

func createSet(t *testing.T, client kubernetes.Interface, s *appsv1.StatefulSet) {
	t.Helper()
	if _, err := client.AppsV1().StatefulSets(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allReady waits until the set "web" has that many ready pods and no other pod.
func allReady(t *testing.T, client kubernetes.Interface, namespace string, want int32) {
	t.Helper()
	eventually(t, "the set is ready", func(ctx context.Context) (bool, error) {
		s, err := client.AppsV1().StatefulSets(namespace).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && s.Status.ReadyReplicas == want && s.Status.Replicas == want, err
	})
}

// volumeOf waits until a claim is bound and returns its volume.
func volumeOf(t *testing.T, client kubernetes.Interface, namespace, claim string) *corev1.PersistentVolume {
	t.Helper()
	var volume *corev1.PersistentVolume
	eventually(t, "claim "+claim+" is bound", func(ctx context.Context) (bool, error) {
		c, err := client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil || c.Status.Phase != corev1.ClaimBound {
			return false, err
		}
		volume, err = client.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
		return err == nil && volume.Status.Phase == corev1.VolumeBound, err
	})
	return volume
}
