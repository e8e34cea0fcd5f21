package storage

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// take creates the claim of the side that takes over, with its fixed name and its volumeName set. It then
// waits until claim and volume name each other.
func (v mover) take(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	to := m.To()
	claim, err := v.claimOf(ctx, to, vol)
	if err != nil {
		return plans.Observation{}, err
	}
	if claim != nil && m.Stamp.Mine(claim) && pending(claim) {
		return v.unbound(claim, to), nil // the binder updates the volume first, the claim last
	}
	pv, err := v.volumeOf(ctx, to, vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	if claim == nil {
		if s, err := v.strange(ctx, to, vol.Template, vol.Ordinal); err != nil || s.Standing != plans.After {
			return s.Idly(), err // with nothing made: abort goes back without it
		}
		return v.makeClaim(m, vol, v.claim(m.To(), vol), pv)
	}
	if why := m.Stamp.Barred(claim); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s %s", claim.Name, why)), nil
	}
	return v.inspect(m, claim, pv), nil
}

// promise says for which claim a volume is reserved. One with the UID of a claim waits for no other claim of that name.
func promise(ref *corev1.ObjectReference) string {
	if ref == nil {
		return "its claimRef is empty"
	}
	return strings.TrimSuffix(fmt.Sprintf("its claimRef names %s/%s with UID %s", ref.Namespace, ref.Name, ref.UID), " with UID ")
}

// makeClaim creates the claim that a volume is reserved for. BEFORE that, the binder must have seen the volume as
// reserved, which its phase shows: a claim that the binder sees earlier than its volume is looked at again only when
// the binder lists everything again, after 15 seconds.
func (v keeper) makeClaim(m plans.StepContext, vol plans.Volume, name string, pv *corev1.PersistentVolume) (plans.Observation, error) {
	to := m.To()
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.Namespace != v.Plan.On(to).Namespace || ref.Name != name || ref.UID != "" {
		return plans.Stop(reasons.VolumeClaimedElsewhere, fmt.Sprintf("volume %s is no longer promised to claim %s of %s, which does not exist: %s", pv.Name, name, v.Plan.On(to), promise(ref))), nil
	}
	if phase := pv.Status.Phase; phase != corev1.VolumeAvailable {
		return plans.Wait(reasons.BinderBehind, fmt.Sprintf("volume %s is %s; waiting for the binder to see that it is reserved for claim %s of %s", pv.Name, cmp.Or(phase, "new"), name, v.Plan.On(to))), nil
	}
	create, err := v.creation(m, pv)
	if err != nil {
		return plans.Stop(reasons.VolumeMarkLost, err.Error()), nil
	}
	return plans.Write(fmt.Sprintf("%s: create claim %s for volume %s", to, name, pv.Name),
		plans.Undo{}, func(ctx context.Context) error { return create(ctx) }), nil
}

// creation returns the creation of the claim that is saved on a volume, on the side that receives the ordinal.
func (v keeper) creation(m plans.StepContext, pv *corev1.PersistentVolume) (func(context.Context, ...client.CreateOption) error, error) {
	next, err := ClaimFrom(pv, v.Plan.On(m.To()).Namespace)
	if err != nil {
		return nil, err
	}
	whole, err := savedClaim(pv)
	if err != nil {
		return nil, err
	}
	m.Stamp.Put(next)
	return func(ctx context.Context, opts ...client.CreateOption) error {
		return whole.Create(ctx, v.On[m.To()], next, opts...)
	}, nil
}

// inspect distinguishes our claim, or the one that was never deleted, from the claim of another writer.
func (v keeper) inspect(m plans.StepContext, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) plans.Observation {
	to := v.Plan.On(m.To())
	together := pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
	switch {
	case claim.Spec.VolumeName != pv.Name:
		return plans.Stop(reasons.ClaimForeign, fmt.Sprintf("claim %s of %s names volume %q, expected %s; delete the claim if it is not needed", claim.Name, to, claim.Spec.VolumeName, pv.Name))
	case !m.Stamp.Mine(claim) && !together:
		return plans.Stop(reasons.ClaimForeign, fmt.Sprintf("claim %s of %s was not created by this plan; delete it if it is not needed", claim.Name, to))
	case claim.DeletionTimestamp != nil:
		return plans.Stop(reasons.ClaimDeleted, fmt.Sprintf("claim %s of %s is being deleted by another writer", claim.Name, to))
	case claim.Status.Phase == corev1.ClaimLost:
		return plans.Stop(reasons.BindingBroken, fmt.Sprintf("claim %s of %s is Lost; its volume is %s", claim.Name, to, pv.Name))
	case claim.Status.Phase != corev1.ClaimBound || !together:
		return v.unbound(claim, m.To())
	}
	return plans.Done()
}

// pending reports whether a claim is so new that the binder may not have processed it yet. After that, the
// volume may show why the claim is not bound.
func pending(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending && claim.DeletionTimestamp == nil && time.Since(claim.CreationTimestamp.Time) < bindingGrace
}

func (v keeper) unbound(claim *corev1.PersistentVolumeClaim, side plans.Side) plans.Observation {
	return plans.Wait(reasons.ClaimNotBound, fmt.Sprintf("claim %s of %s is %s; waiting for it to be bound to volume %s", claim.Name, v.Plan.On(side), claim.Status.Phase, claim.Spec.VolumeName))
}
