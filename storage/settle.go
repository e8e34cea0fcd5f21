package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// settle returns the volumes of an ordinal to the side that keeps them (m.To), in this order: it deletes the
// leftover volume object of the other cluster while that is Retain, removes our marks, and restores the
// user's own reclaim policy LAST (S15).
func (v mover) settle(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, c := range v.Plan.Moved() {
		claim, err := v.Claim(ctx, m.To(), v.Plan.ClaimName(c.Template, m.Ordinals.Start))
		if err != nil {
			return plans.Observation{}, err
		}
		if claim == nil || claim.Spec.VolumeName == "" {
			continue // never protected: there is no volume to return
		}
		if stop := v.deleted(m, claim); stop != nil {
			return *stop, nil
		}
		for _, look := range []func(context.Context, plans.StepContext, *corev1.PersistentVolumeClaim) (plans.Observation, error){
			v.late, v.forget, v.unmarkClaim, v.restore,
		} {
			s, err := look(ctx, m, claim)
			if err != nil || s.Standing != plans.After {
				return s, err
			}
		}
	}
	return v.abandoned(ctx, m)
}

// deleted stops where the claim of the side that keeps a volume is being deleted: with the user's policy Delete, the
// data would go with it (S4).
func (v mover) deleted(m plans.StepContext, kept *corev1.PersistentVolumeClaim) *plans.Observation {
	if kept.DeletionTimestamp == nil {
		return nil
	}
	stop := plans.Stop(reasons.ClaimDeleted, fmt.Sprintf("claim %s of %s is being deleted by another writer; its volume %s stays at Retain, or the data would go with the claim; when the claim is gone, `resume` ends the plan and leaves the volume without its marks", kept.Name, v.Plan.On(m.To()), kept.Spec.VolumeName))
	return &stop
}

// late deletes a claim of ours that appeared on the side that gives the ordinal up after the plan was turned: a creation
// that was in progress then cannot be cancelled, and a claim may have been prepared. No pod of ours ever used it.
func (v mover) late(ctx context.Context, m plans.StepContext, kept *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	claim, err := v.Claim(ctx, m.From, kept.Name)
	if err != nil || claim == nil || !m.Stamp.Mine(claim) {
		return plans.Done(), err
	}
	return v.dropClaim(ctx, m, claim)
}

// forget deletes the volume object of the side that released the ordinal. A live read must show it as Retain
// at that moment: with Delete, the disk itself would be destroyed.
func (v mover) forget(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if v.Plan.OneCluster() {
		return plans.Done(), nil // both sides have the same object
	}
	old, err := v.volumeOf(ctx, m.From, claim.Spec.VolumeName)
	if err != nil {
		return plans.Observation{}, err
	}
	if old == nil || !m.Stamp.Mine(old) {
		return plans.Done(), nil
	}
	kept, err := v.volumeOf(ctx, m.To(), claim.Spec.VolumeName)
	if err != nil {
		return plans.Observation{}, err
	}
	return v.dropVolume(ctx, m, old, kept, claim.Name)
}

// dropVolume deletes a volume object that is Retain, while another object for the same disk is kept.
func (v mover) dropVolume(ctx context.Context, m plans.StepContext, old, kept *corev1.PersistentVolume, claim string) (plans.Observation, error) {
	if s := outlived(m, old, kept); s.Standing != plans.After {
		return s, nil
	}
	switch {
	case old.DeletionTimestamp != nil:
		return plans.Wait(reasons.VolumeTerminating, fmt.Sprintf("volume %s on the %s is being deleted (finalizers %s)", old.Name, m.From, strings.Join(old.Finalizers, ", "))), nil
	case old.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return plans.Stop(reasons.VolumeNotRetained, fmt.Sprintf("volume %s on the %s has reclaim policy %s, expected Retain: deleting it would destroy the disk; set it to Retain", old.Name, m.From, old.Spec.PersistentVolumeReclaimPolicy)), nil
	case old.Status.Phase == corev1.VolumeBound:
		if taker, err := v.Claim(ctx, m.From, claim); err != nil || taker == nil || taker.DeletionTimestamp != nil {
			return plans.Wait(reasons.BinderBehind, fmt.Sprintf("volume %s on the %s: waiting for the binder to see that its claim is gone", old.Name, m.From)), err
		}
		return plans.Stop(reasons.VolumeClaimedElsewhere, fmt.Sprintf("volume %s on the %s is Bound, expected Released: find out which claim took it", old.Name, m.From)), nil
	case m.Stamp.Barred(old) != "":
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s %s", old.Name, m.Stamp.Barred(old))), nil
	}
	return plans.Write(fmt.Sprintf("%s: delete the leftover volume object %s (Retain: the disk stays)", m.From, old.Name),
		plans.Undo{}, func(ctx context.Context) error { return writes.Delete(ctx, v.On[m.From], old) }), nil
}

// outlived stops where the disk of a volume object that is given up has no other object that stays.
func outlived(m plans.StepContext, old, kept *corev1.PersistentVolume) plans.Observation {
	switch {
	case kept == nil || !sameDisk(kept, old):
		return plans.Stop(reasons.OtherDisk, fmt.Sprintf("volume %s means another disk on each side; nothing is deleted", old.Name))
	case kept.DeletionTimestamp != nil:
		return plans.Stop(reasons.VolumeDeleted, fmt.Sprintf("volume %s on the %s is being deleted by another writer, and volume %s on the %s is the only other object for its disk; nothing is deleted", kept.Name, m.To(), old.Name, m.From))
	}
	return plans.Done()
}

func sameDisk(a, b *corev1.PersistentVolume) bool {
	x, _ := Handle(a)
	y, _ := Handle(b)
	return Means(a, y) || Means(b, x)
}

// unmarkClaim removes our mark from a claim while the marks of its volume must still be there. If they are
// missing, only the user knows the volume's policy, and the write's text reports that.
func (v mover) unmarkClaim(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if !m.Stamp.Mine(claim) {
		return plans.Done(), nil
	}
	if why := m.Stamp.Barred(claim); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s %s", claim.Name, why)), nil
	}
	pv, err := v.volumeOf(ctx, m.To(), claim.Spec.VolumeName)
	if err != nil {
		return plans.Observation{}, err
	}
	left := ""
	if pv != nil && !m.Stamp.Mine(pv) {
		left = fmt.Sprintf("; its volume %s lost the annotations of this plan, and keeps reclaim policy %s: set it back", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	next := claim.DeepCopy()
	plans.Unmark(next)
	return plans.Write(fmt.Sprintf("%s: remove the annotations of this plan from claim %s%s", m.To(), claim.Name, left),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], claim, next) }), nil
}

// restore writes the user's reclaim policy back and removes our marks, in one write.
func (v mover) restore(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	pv, err := v.volumeOf(ctx, m.To(), claim.Spec.VolumeName)
	if err != nil {
		return plans.Observation{}, err
	}
	if pv == nil || !m.Stamp.Mine(pv) {
		return plans.Done(), nil
	}
	if why := m.Stamp.Barred(pv); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s %s", pv.Name, why)), nil
	}
	if pv.DeletionTimestamp != nil {
		return plans.Stop(reasons.VolumeDeleted, fmt.Sprintf("volume %s is being deleted by another writer: it stays at Retain, so that its disk outlives it", pv.Name)), nil
	}
	if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return plans.Stop(reasons.BindingBroken, fmt.Sprintf("volume %s and claim %s do not name each other, expected them bound; the volume is left at Retain", pv.Name, claim.Name)), nil
	}
	next := pv.DeepCopy()
	if policy := pv.Annotations[plans.PolicyAnnotation]; policy != "" {
		next.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimPolicy(policy)
	}
	plans.Unmark(next)
	return plans.Write(fmt.Sprintf("volume %s: reclaim policy Retain -> %s, marks off", pv.Name, next.Spec.PersistentVolumeReclaimPolicy),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], pv, next) }), nil
}
