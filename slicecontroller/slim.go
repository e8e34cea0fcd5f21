package slicecontroller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slim returns the cache options for pods. Most pods of a cluster are controlled by other kinds: only
// their metadata is kept, such as names, labels and owner references. Pods without a controller are kept
// whole, since a set may adopt them.
func slim(of schema.GroupVersionKind) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slimPod(of)}}
}

func slimPod(of schema.GroupVersionKind) toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	return func(o any) (any, error) {
		p, ok := o.(*corev1.Pod)
		if !ok {
			return strip(o)
		}
		c := metav1.GetControllerOfNoCopy(p)
		if c == nil || c.Kind == of.Kind {
			return strip(o)
		}
		return &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp, OwnerReferences: p.OwnerReferences,
		}}, nil
	}
}
