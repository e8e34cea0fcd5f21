package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// protect protects the volumes of an ordinal BEFORE anything moves (S4). One write sets the reclaim policy to
// Retain and saves the old policy and the manifest of the claim on the volume.
func (v departure) protect(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, c := range v.Plan.Moved() {
		claim, pv, reason, err := v.bound(ctx, m.From, c.Template, m.Ordinals.Start)
		if err != nil {
			return plans.Observation{}, err
		}
		if reason != "" {
			return plans.Stop(reasons.BindingBroken, reason), nil
		}
		if s := v.owned(plans.Source, claim); s != nil {
			return *s, nil
		}
		s, err := v.retain(ctx, m, claim, pv)
		if err != nil || s.Standing != plans.After {
			return s, err
		}
	}
	return plans.Done(), nil
}

// owned stops or waits while a claim has an owner. When the owner is deleted, the garbage collector would
// delete the claim, and with it the binding. The StatefulSet controller removes its own owner reference once
// the retention policy is Retain
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-apps/1847-autoremove-statefulset-pvcs).
func (v objects) owned(side plans.Side, claim *corev1.PersistentVolumeClaim) *plans.Observation {
	var found *plans.Observation
	for _, o := range claim.OwnerReferences {
		if (!plans.IsSet(o.Kind) || o.Name != v.Plan.On(side).Name) && o.Kind != "Pod" {
			s := plans.Stop(reasons.ClaimOwned, fmt.Sprintf("claim %s is owned by %s %s, expected no owner: it would be deleted together with it; remove the owner reference", claim.Name, o.Kind, o.Name))
			return &s
		}
		s := plans.Wait(reasons.ClaimReferenced, fmt.Sprintf("claim %s: waiting for the controller of the set to remove its owner reference", claim.Name))
		found = &s
	}
	return found
}

// retain returns the write that protects a volume, or Done if it is protected already.
func (v keeper) retain(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (plans.Observation, error) {
	if why := m.Stamp.Barred(pv); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s %s", pv.Name, why)), nil
	}
	manifest, err := wholeManifest(ctx, v.On[m.From], claim)
	if err != nil {
		return plans.Observation{}, err
	}
	if was := pv.Annotations[plans.ClaimAnnotation]; m.From == plans.Destination && (was != "" || !m.Readopt) { // the claim was created from the saved manifest
		if manifest, err = Changed(was, manifest); err != nil {
			return plans.Stop(reasons.VolumeMarkLost, fmt.Sprintf("annotation %s of volume %s is no longer a valid claim, and the source's claim could not be recreated: put it back (%s)", plans.ClaimAnnotation, pv.Name, err)), nil
		}
	}
	_, saved := pv.Annotations[plans.PolicyAnnotation]
	held := saved && m.Stamp.Mine(pv) && pv.Annotations[plans.ClaimAnnotation] == manifest
	if held && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return plans.Done(), nil
	}
	next := pv.DeepCopy()
	m.Stamp.Put(next)
	if !saved { // the first value is the user's; a later one would be our own Retain
		next.Annotations[plans.PolicyAnnotation] = string(pv.Spec.PersistentVolumeReclaimPolicy)
	}
	next.Annotations[plans.ClaimAnnotation] = manifest
	next.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return plans.Write(fmt.Sprintf("volume %s of claim %s: reclaim policy %s -> Retain", pv.Name, claim.Name, pv.Spec.PersistentVolumeReclaimPolicy),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[m.From], pv, next) }), nil
}
