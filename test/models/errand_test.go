package models_test

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errands atomic.Int32

// errand gives the binder, the protection of claims and volumes, the disruption controller and the collector something to
// do, and waits until it is done. What they were given before is done by then.
func (s *stage) errand(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := fmt.Sprintf("errand-%d", errands.Add(1))
	const in = metav1.NamespaceDefault
	pv, claim := disk(name), claimFor(in, name, name)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"errand": name}}}}
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name + "-owner", UID: "00000000-0000-0000-0000-000000000000"}}}}
	for _, o := range []client.Object{pv, claim, budget, orphan} {
		if err := here.Create(ctx, o); err != nil {
			return err
		}
	}
	for _, wait := range []struct {
		o    client.Object
		list client.ObjectList
		done func() bool
	}{
		{claim, &corev1.PersistentVolumeClaimList{}, func() bool { return claim.Status.Phase == corev1.ClaimBound }},
		{budget, &policyv1.PodDisruptionBudgetList{}, func() bool { return budget.Status.ObservedGeneration > 0 }},
		{orphan, &corev1.ConfigMapList{}, nil},
	} {
		if err := until(ctx, wait.o, wait.list, wait.done); err != nil {
			return err
		}
	}
	for _, o := range []client.Object{claim, pv, budget} {
		if err := here.Delete(ctx, o); err != nil {
			return err
		}
	}
	if err := until(ctx, claim, &corev1.PersistentVolumeClaimList{}, nil); err != nil {
		return err
	}
	return until(ctx, pv, &corev1.PersistentVolumeList{}, nil)
}

// until waits until an object is as it should be; done is nil for gone.
func until(ctx context.Context, o client.Object, list client.ObjectList, done func() bool) error {
	w, err := here.Watch(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		err := here.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil && done != nil && done() || apierrors.IsNotFound(err) && done == nil {
			return nil
		}
		select {
		case <-w.ResultChan():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
