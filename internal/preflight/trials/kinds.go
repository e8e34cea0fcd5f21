package trials

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// kind is how the writes of a kind are tried.
type kind struct {
	empty func() client.Object
	// ofPlan reports that the plan makes all objects of the kind that it changes and deletes.
	ofPlan bool
	// made returns what a write creates, and the object of the source that it is copied from, if any. It returns nothing
	// where another check tries it (made is nil then), or where another check reports what is missing.
	made func(context.Context, trier, ask) (next, original client.Object, err error)
	// changed makes the changes of the plan to an object, besides the stamp.
	changed func(trier, ask, client.Object)
}

// kinds has every kind that a part writes.
func kinds() map[string]kind {
	return map[string]kind{
		plans.NativeKind:        {empty: func() client.Object { return &appsv1.StatefulSet{} }, changed: frozen}, // created by the check admission
		"PersistentVolume":      {empty: func() client.Object { return &corev1.PersistentVolume{} }, changed: protected},
		"PersistentVolumeClaim": {empty: func() client.Object { return &corev1.PersistentVolumeClaim{} }, made: claim},
		"PodDisruptionBudget":   {empty: func() client.Object { return &policyv1.PodDisruptionBudget{} }, made: budget, changed: tightened},
		"ControllerRevision":    {empty: func() client.Object { return &appsv1.ControllerRevision{} }},
		"ConfigMap":             {empty: func() client.Object { return &corev1.ConfigMap{} }, ofPlan: true, made: copied},
		"Secret":                {empty: func() client.Object { return &corev1.Secret{} }, ofPlan: true, made: copied},
		"ServiceAccount":        {empty: func() client.Object { return &corev1.ServiceAccount{} }, ofPlan: true, made: copied},
		"Service":               {empty: func() client.Object { return &corev1.Service{} }, ofPlan: true, made: service},
		"EndpointSlice": {empty: func() client.Object { return &discoveryv1.EndpointSlice{} }, ofPlan: true, made: func(_ context.Context, t trier, a ask) (client.Object, client.Object, error) {
			return dns.MadeSlice(t.Plan, a.Namespace, a.Name), nil, nil
		}},
		"ServiceExport": {empty: func() client.Object { return &mcsv1alpha1.ServiceExport{} }, ofPlan: true, made: func(_ context.Context, t trier, a ask) (client.Object, client.Object, error) {
			return dns.MadeExport(t.Plan, a.Side), nil, nil
		}},
		"Pod": {empty: func() client.Object { return &corev1.Pod{} }, ofPlan: true, made: place},
		"Job": {empty: func() client.Object { return &batchv1.Job{} }, ofPlan: true, made: job},
	}
}

// madeBy names the checks that try to create what is not tried here.
func madeBy() map[string]string {
	return map[string]string{plans.NativeKind: "admission", "PersistentVolume": "volumes-accepted", "PersistentVolumeClaim": "claims-accepted"}
}

// frozen is a set with what the first step gives it, and with its updates pinned, as while a wave is away.
func frozen(_ trier, _ ask, o client.Object) {
	set, ok := o.(*appsv1.StatefulSet)
	if !ok {
		return
	}
	if set.Spec.PersistentVolumeClaimRetentionPolicy != nil {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		}
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && set.Annotations[plans.PinnedAnnotation] == "" {
		above := plans.AboveAll
		rolling.Partition = &above
	}
}

// protected is a volume as it is while the plan has it.
func protected(_ trier, _ ask, o client.Object) {
	pv, ok := o.(*corev1.PersistentVolume)
	if !ok {
		return
	}
	if _, saved := pv.Annotations[plans.PolicyAnnotation]; !saved {
		pv.Annotations[plans.PolicyAnnotation] = string(pv.Spec.PersistentVolumeReclaimPolicy)
	}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

// tightened is a budget as it is while a wave is away.
func tightened(t trier, a ask, o client.Object) {
	b, ok := o.(*policyv1.PodDisruptionBudget)
	if !ok {
		return
	}
	spec := pdb.During(t.Plan, t.first())[a.Side]
	b.Spec.MinAvailable, b.Spec.MaxUnavailable = spec.MinAvailable, spec.MaxUnavailable
}

func budget(ctx context.Context, t trier, a ask) (client.Object, client.Object, error) {
	var model *policyv1.PodDisruptionBudget
	if _, existed := t.Plan.BudgetOn(plans.Source); existed && a.Side == plans.Destination {
		var err error
		if model, err = t.Budget(ctx, plans.Source); err != nil || model == nil {
			return nil, nil, err
		}
	}
	set := t.Now.Set // the other one has its selector
	if set == nil {
		return nil, nil, nil
	}
	next := pdb.Made(t.Plan, a.Side, model, set, pdb.During(t.Plan, t.first())[a.Side])
	if model == nil {
		return next, nil, nil
	}
	return next, model, nil
}

// claim returns the claim that an abort makes on the source: like the one that is there.
func claim(ctx context.Context, t trier, a ask) (client.Object, client.Object, error) {
	if a.Side == plans.Destination {
		return nil, nil, nil
	}
	have, err := t.Claim(ctx, a.Side, a.Name)
	if err != nil || have == nil || have.Spec.VolumeName == "" {
		return nil, nil, err
	}
	manifest, err := storage.Manifest(have)
	if err != nil {
		return nil, nil, err
	}
	pv := &corev1.PersistentVolume{}
	pv.Name, pv.Annotations = have.Spec.VolumeName, map[string]string{plans.ClaimAnnotation: manifest}
	if have.Spec.StorageClassName != nil {
		pv.Spec.StorageClassName = *have.Spec.StorageClassName
	}
	next, err := storage.ClaimFrom(pv, a.Namespace)
	if err != nil {
		return nil, nil, err
	}
	next.Name += "-dry-run" // the claim itself is still there
	return next, have, nil
}

func copied(ctx context.Context, t trier, a ask) (client.Object, client.Object, error) {
	from, to, err := t.OnBoth(ctx, plans.Dependency{Kind: a.Kind, Name: a.Name})
	if err != nil || from == nil || to != nil {
		return nil, nil, err
	}
	return copies.Replica(t.Plan, from), from, nil
}

// service returns the copy of a Service, or the one that stands in for it where the other cluster's names are asked.
func service(ctx context.Context, t trier, a ask) (client.Object, client.Object, error) {
	d := plans.Dependency{Kind: a.Kind, Name: a.Name}
	if a.Side == plans.Destination && a.Namespace == t.Plan.Destination.Namespace && slices.ContainsFunc(t.Plan.Dependencies, func(o plans.Dependency) bool { return o.Kind == d.Kind && o.Name == d.Name }) {
		return copied(ctx, t, a)
	}
	model, err := t.Dependency(ctx, plans.Source, d)
	if s, ok := model.(*corev1.Service); ok && err == nil {
		return dns.MadeService(t.Plan, a.Namespace, s), nil, nil
	}
	return nil, nil, err
}

// place returns a placeholder, without what it would learn from the cluster. What it names may not have been copied yet.
func place(_ context.Context, t trier, a ask) (client.Object, client.Object, error) {
	set := t.Now.Set
	if set == nil {
		return nil, nil, nil
	}
	if a.Side == plans.Destination {
		var err error
		if set, err = build.DestinationSet(set, t.Plan); err != nil {
			return nil, nil, err
		}
	}
	for o := range a.step.Ordinals.All() {
		if t.Plan.Place(a.Side, o) == a.Name {
			pod, err := placeholder.Tried(t.Plan, a.Side, set, o)
			return pod, nil, err
		}
		if plans.Anchor(t.Plan, a.Side, o) == a.Name {
			return nil, nil, nil // the ordinal goes without it where it is refused
		}
	}
	return nil, nil, fmt.Errorf("no ordinal has the placeholder %s", a.Name)
}

func job(_ context.Context, t trier, a ask) (client.Object, client.Object, error) {
	for _, g := range t.Plan.GatesAt(a.step.Op) {
		if !g.IsJob() {
			continue
		}
		for o := range a.step.Ordinals.All() {
			if t.Plan.JobName(g, a.step, o) == a.Name {
				return gates.Made(t.Plan, g, a.step, o), nil, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("no gate has the Job %s", a.Name)
}
