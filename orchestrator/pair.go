package orchestrator

import (
	"context"
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Clusters holds one live client per side. With both sides in one cluster they
// may be the same client.
type Clusters map[plans.Side]client.Client

// pair is the two sides of a plan: which sets they are, and the clients of their clusters. Its reads are live.
type pair struct {
	plan *plans.Plan
	on   Clusters
}

// set reads the StatefulSet of a side; nil means that there is none.
func (w pair) set(ctx context.Context, side plans.Side) (*appsv1.StatefulSet, error) {
	return readSet(ctx, w.on[side], w.plan.On(side))
}

// everyPod reads all pods of the namespace of a side.
func (w pair) everyPod(ctx context.Context, side plans.Side) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := w.on[side].List(ctx, &list, client.InNamespace(w.plan.On(side).Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", w.plan.On(side), err)
	}
	return list.Items, nil
}

// pods reads the pods that a set controls, by ordinal name.
func (w pair) pods(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) (map[string]*corev1.Pod, error) {
	all, err := w.everyPod(ctx, side)
	out := map[string]*corev1.Pod{}
	for i := range all {
		if metav1.IsControlledBy(&all[i], set) {
			out[all[i].Name] = &all[i]
		}
	}
	return out, err
}

// pod reads the pod of an ordinal; nil means that there is none.
func (w pair) pod(ctx context.Context, side plans.Side, ordinal int32) (*corev1.Pod, error) {
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: w.plan.On(side).Namespace, Name: w.plan.Pod(ordinal)}
	err := w.on[side].Get(ctx, key, &pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", key, err)
	}
	return &pod, nil
}

// claim reads a claim of a side; nil means that there is none.
func (w pair) claim(ctx context.Context, side plans.Side, name string) (*corev1.PersistentVolumeClaim, error) {
	var c corev1.PersistentVolumeClaim
	err := w.on[side].Get(ctx, client.ObjectKey{Namespace: w.plan.On(side).Namespace, Name: name}, &c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading claim %s of %s: %w", name, w.plan.On(side), err)
	}
	return &c, nil
}

// object returns an empty object of a dependency's kind.
func object(d plans.Dependency) client.Object {
	switch d.Kind {
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Secret":
		return &corev1.Secret{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "Service":
		return &corev1.Service{}
	}
	return nil
}

// dependency reads a dependency on a side; nil means that there is none.
func (w pair) dependency(ctx context.Context, side plans.Side, d plans.Dependency) (client.Object, error) {
	o := object(d)
	if o == nil {
		return nil, fmt.Errorf("dependency %s: unknown kind", d)
	}
	err := w.on[side].Get(ctx, client.ObjectKey{Namespace: w.plan.On(side).Namespace, Name: d.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s in namespace %s: %w", d, w.plan.On(side).Namespace, err)
	}
	return o, nil
}
