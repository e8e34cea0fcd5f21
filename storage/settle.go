package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// settlement returns the volumes to the side that keeps them.
type settlement struct{ keeper }

// settle returns the volumes of an ordinal to the side that keeps them (m.To), in this order: it deletes the
// leftover volume object of the other cluster while that is Retain, removes our marks, and restores the
// user's own reclaim policy LAST (S15).
func (v settlement) settle(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, c := range v.Plan.Moved() {
		claim, err := v.Claim(ctx, m.To(), v.Plan.ClaimName(m.To(), c.Template, m.Ordinals.Start))
		if err != nil {
			return plans.Observation{}, err
		}
		if claim == nil || claim.Spec.VolumeName == "" {
			continue // never protected: there is no volume to return
		}
		if stop := v.deleted(m, claim); stop != nil {
			return *stop, nil
		}
		by, err := v.by(c.Template)
		if err != nil {
			return plans.Observation{}, err
		}
		for _, look := range []func(context.Context, plans.StepContext, *corev1.PersistentVolumeClaim) (plans.Observation, error){
			v.late, by.settle, v.unmarkClaim, v.restore,
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
func (v settlement) deleted(m plans.StepContext, kept *corev1.PersistentVolumeClaim) *plans.Observation {
	if kept.DeletionTimestamp == nil {
		return nil
	}
	stop := plans.Stop(reasons.ClaimDeleted, fmt.Sprintf("claim %s of %s is being deleted by another writer; its volume %s stays at Retain, or the data would go with the claim; when the claim is gone, `resume` ends the plan and leaves the volume without its marks", kept.Name, v.Plan.On(m.To()), kept.Spec.VolumeName))
	return &stop
}

// late deletes a claim of ours that appeared on the side that gives the ordinal up after the plan was turned: a creation
// that was in progress then cannot be cancelled, and a claim may have been prepared. No pod of ours ever used it.
func (v settlement) late(ctx context.Context, m plans.StepContext, kept *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	claim, err := v.Claim(ctx, m.From, kept.Name)
	if err != nil || claim == nil || !m.Stamp.Mine(claim) {
		return plans.Done(), err
	}
	return v.dropClaim(ctx, m, claim)
}

// unmarkClaim removes our mark from a claim while the marks of its volume must still be there. If they are
// missing, only the user knows the volume's policy, and the write's text reports that.
func (v keeper) unmarkClaim(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
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
func (v keeper) restore(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
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
