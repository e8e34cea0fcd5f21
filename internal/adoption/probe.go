package adoption

import (
	"context"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// probeLabel is the label by which the probe of an adoption selects its pods, of which there are none.
const probeLabel = "stsmigrate.dev/adoption"

// probing returns the reference of the probe: a set of the new kind without replicas. The name is short, since
// that of a slice is part of a hostname.
func (a Adoption) probing() plans.Ref {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(a.Set.Name)) // never fails
	at := a.becomes()
	at.Name = fmt.Sprintf("stsmigrate-%08x", sum.Sum32())
	return at
}

// controlled looks whether a controller of the new kind runs, BEFORE the former set is deleted: else no
// controller would have its pods. After means that one does. The record owns the probe, which is deleted
// with it.
func (a Adoption) controlled(ctx context.Context, p *past, record *corev1.ConfigMap) (plans.Observation, error) {
	at := a.probing()
	probe, err := a.read(ctx, at)
	switch {
	case err != nil:
		return plans.Observation{}, err
	case probe == nil:
		return plans.Write("make "+at.Set()+" without replicas, to see whether its controller runs", plans.Undo{}, func(ctx context.Context) error {
			return a.as(at).Create(ctx, newProbe(at, p.Set, record))
		}), nil
	case probe.DeletionTimestamp != nil || !metav1.IsControlledBy(probe, record):
		return plans.Wait(reasons.SetUnsettled, fmt.Sprintf("%s is of another adoption, and must be deleted first", at.Set())), nil
	case probe.Status.ObservedGeneration < probe.Generation || probe.Status.ObservedGeneration == 0:
		return plans.Wait(reasons.SetUnsettled, fmt.Sprintf("%s: its controller has not looked at it yet; is the controller of its kind running? Nothing has been changed so far, and to give up, delete ConfigMap %s", at.Set(), record.Name)), nil
	}
	return plans.Done(), nil
}

func newProbe(at plans.Ref, set *appsv1.StatefulSet, record *corev1.ConfigMap) *appsv1.StatefulSet {
	labels := map[string]string{probeLabel: at.Name}
	probe := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: plans.NativeKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: at.Namespace, Name: at.Name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(record, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), ServiceName: set.Spec.ServiceName, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: *set.Spec.Template.DeepCopy(), VolumeClaimTemplates: set.Spec.DeepCopy().VolumeClaimTemplates, // containers mount them
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
	}
	probe.Spec.Template.Labels = labels // not those of the set, whose revisions are found by them
	return probe
}
