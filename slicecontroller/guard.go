package slicecontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// canaryLabel marks StatefulSets that nobody is to take care of.
const canaryLabel = "apps.stsmigrate.dev/canary"

// heed is how long the guard waits for somebody else to take care of its canary. A
// controller that is idle needs some milliseconds.
const heed = time.Second

// ErrAnother says that another controller takes care of StatefulSets in this cluster.
var ErrAnother = errors.New("another controller takes care of StatefulSets in this cluster")

// alone is the guard of StatefulSets, which people may switch off.
func alone(ctx context.Context, c client.WithWatch, o Options) error {
	if !o.Guard {
		return nil
	}
	return guard(ctx, c, o.Namespace)
}

// guard makes a StatefulSet without replicas and watches whether anybody takes care of it
// (AM-6): two controllers at once would not agree. It takes it away again, and those of
// processes that died over it.
func guard(ctx context.Context, c client.WithWatch, namespace string) error {
	if err := sweep(ctx, c, namespace); err != nil {
		return err
	}
	canary := newCanary(namespace)
	if err := c.Create(ctx, canary); err != nil {
		return fmt.Errorf("making a StatefulSet without replicas in namespace %s, to see whether another controller is at work (--guard=false does without): %w", namespace, err)
	}
	defer func() {
		_ = c.Delete(context.WithoutCancel(ctx), canary, client.Preconditions{UID: &canary.UID}) // else the next sweep
	}()
	seen, err := c.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": canary.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: canary.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watching StatefulSet %s/%s: %w", namespace, canary.Name, err)
	}
	defer seen.Stop()
	enough := time.NewTimer(heed)
	defer enough.Stop()
	for {
		select {
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-seen.ResultChan():
			if !open || e.Type == watch.Error {
				return fmt.Errorf("watching StatefulSet %s/%s: the watch ended (%v)", namespace, canary.Name, e.Object)
			}
			if s, ok := e.Object.(*appsv1.StatefulSet); ok && s.Status.ObservedGeneration > 0 {
				return fmt.Errorf("%w: %s has written the status of StatefulSet %s/%s, which was made to find that out. "+
					"Switch it off (kube-controller-manager --controllers=*,-statefulset-controller), or stop the other process; --guard=false starts without looking",
					ErrAnother, writer(s), namespace, s.Name)
			}
		}
	}
}

func newCanary(namespace string) *appsv1.StatefulSet {
	labels := map[string]string{canaryLabel: "guard"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "slicecontroller-canary-", Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       harmless(),
			},
		},
	}
}

// harmless is what every namespace lets in without a warning.
func harmless() corev1.PodSpec {
	yes, no := true, false
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "never", Image: "never", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
}

// sweep deletes canaries that nobody is watching any more.
func sweep(ctx context.Context, c client.Client, namespace string) error {
	var list appsv1.StatefulSetList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{canaryLabel}); err != nil {
		return err
	}
	for k := range list.Items {
		s := &list.Items[k]
		if time.Since(s.CreationTimestamp.Time) < time.Minute {
			continue
		}
		if err := c.Delete(ctx, s, client.Preconditions{UID: &s.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// writer names who has written the status last.
func writer(s *appsv1.StatefulSet) string {
	for _, m := range s.ManagedFields {
		if m.Subresource == "status" {
			return m.Manager
		}
	}
	return "somebody"
}
