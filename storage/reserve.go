package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// reserve sets the volume's claimRef to the claim of the side that takes over, BEFORE that claim exists. The
// binder then binds the claim at once, and at no time could another claim take the volume (S5). The mode says how: a
// single write turns the claimRef from the old claim to the new one (turn), or the volume is created with it (reimport). A
// wave that is still up gets its volume sealed instead (Prepare).
func (v mover) reserve(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	to := m.To()
	pv, err := v.volumeOf(ctx, to, vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	by, err := v.by(vol.Template)
	if err != nil {
		return plans.Observation{}, err
	}
	if pv == nil {
		held, err := v.volumeOf(ctx, m.From, vol.Name)
		if err != nil {
			return plans.Observation{}, err
		}
		if why := v.kept(m, vol, held); why != "" {
			return plans.Stop(reasons.VolumeUnsafe, why), nil
		}
		return by.create(ctx, m, vol, held)
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	if why := m.Stamp.Barred(pv); why != "" || !m.Stamp.Mine(pv) {
		return plans.Stop(reasons.VolumeMarkLost, fmt.Sprintf("volume %s on the %s is not protected by this plan %s", pv.Name, to, why)), nil
	}
	if s, err := by.adopt(ctx, m, vol, pv); err != nil || s.Standing != plans.After {
		return s, err
	}
	ref := pv.Spec.ClaimRef
	switch {
	case ref == nil:
		return plans.Stop(reasons.VolumeClaimedElsewhere, fmt.Sprintf("volume %s has an empty claimRef: any claim may take it; set it to %s/%s", pv.Name, v.Plan.On(to).Namespace, v.claim(to, vol))), nil
	case v.named(ref, to, vol):
		if why, err := v.astray(ctx, m, vol); err != nil || why != "" {
			return plans.Stop(reasons.VolumeUnsafe, why), err
		}
		return v.reserved(ctx, m, vol, pv)
	default:
		return plans.Stop(reasons.VolumeClaimedElsewhere, fmt.Sprintf("volume %s is promised to claim %s/%s, expected %s/%s", pv.Name, ref.Namespace, ref.Name, v.Plan.On(to).Namespace, v.claim(to, vol))), nil
	}
}

// astray returns the reason why the volume object that the source keeps, where it has one of its own, is not as the plan
// left it, or "". That of the destination may have been made long before.
func (v mover) astray(ctx context.Context, m plans.StepContext, vol plans.Volume) (string, error) {
	if v.mode(vol.Template).OneObject() || m.From == plans.Destination {
		return "", nil
	}
	held, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil {
		return "", err
	}
	return v.kept(m, vol, held), nil
}

// reserved accepts a claimRef that the claim of this side can use: without a UID, or with the UID of the
// existing claim. The UID of a deleted claim would leave the volume Released forever, so it is removed.
func (v mover) reserved(ctx context.Context, m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) (plans.Observation, error) {
	claim, err := v.claimOf(ctx, m.To(), vol)
	if err != nil {
		return plans.Observation{}, err
	}
	if claim != nil && claim.DeletionTimestamp != nil {
		// This is our own deletion, in progress when the plan was reversed. The claim must be gone before it
		// can be recreated.
		return plans.Wait(reasons.ClaimTerminating, fmt.Sprintf("claim %s of %s is being deleted", claim.Name, v.Plan.On(m.To()))), nil
	}
	uid := pv.Spec.ClaimRef.UID
	if !m.InFlight() && claim == nil { // the ordinal is up on the other side: the volume stays sealed, or is sealed
		return v.seal(m, vol, pv), nil
	}
	if uid == "" || uid == uidOf(claim) {
		return plans.Done(), nil
	}
	// The claim may have been read before the volume, and may have come between, from a process that was fenced. To
	// remove its UID would unbind it for good: the volume of a claim that is bound must name it. So the claim is read
	// AFTER the volume, whose write is conditional on how it was read.
	there, err := v.Live().Claim(ctx, m.To(), v.claim(m.To(), vol))
	if err != nil {
		return plans.Observation{}, err
	}
	return v.unseal(m, vol, pv, there), nil
}

// unseal takes a UID off a volume that is not that of the claim which is there.
func (v mover) unseal(m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume, there reads.Seen[*corev1.PersistentVolumeClaim]) plans.Observation {
	if pv.Spec.ClaimRef.UID == uidOf(there.Object()) {
		return plans.Done()
	}
	return v.point(m, vol, pv, m.To(), "")
}

// seal promises a volume to a claim that cannot come: to one with the UID of the claim that has the disk, in the other
// cluster. No claim of the name is bound to it, also none of another writer (S20). In flight, Reserve takes the seal off.
func (v mover) seal(m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) plans.Observation {
	if pv.Spec.ClaimRef.UID != "" {
		return plans.Done()
	}
	return v.point(m, vol, pv, m.To(), vol.Claim)
}

// point promises a volume to the claim of a side.
func (v keeper) point(m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume, side plans.Side, uid types.UID) plans.Observation {
	next := pv.DeepCopy()
	ref := RefTo(v.Plan.On(side).Namespace, v.claim(side, vol), uid)
	next.Spec.ClaimRef = &ref
	sign(m, vol, next)
	return plans.Write(fmt.Sprintf("volume %s: %s", pv.Name, pointing(pv.Spec.ClaimRef, &ref)),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[side], pv, next) })
}

// pointing says what becomes of a claimRef.
func pointing(was, is *corev1.ObjectReference) string {
	switch {
	case is.UID != "":
		return fmt.Sprintf("no claim can have it, not even %s/%s", is.Namespace, is.Name)
	case was.Namespace == is.Namespace && was.Name == is.Name:
		return fmt.Sprintf("claim %s/%s can have it", is.Namespace, is.Name)
	}
	return fmt.Sprintf("claimRef %s/%s -> %s/%s", was.Namespace, was.Name, is.Namespace, is.Name)
}

// sign stamps a volume that is handed over, with the proof that it was free.
func sign(m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) {
	m.Stamp.Put(pv)
	if m.InFlight() {
		if proof := m.Flight.Pod(vol.Ordinal).Proof; proof != "" {
			pv.Annotations[plans.ProofAnnotation] = proof
		}
	}
}
