package storage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// bindingGrace is the longest normal duration of the binding of a claim, or of the deletion of an unmounted
// one. The reason for a wait is not looked up before it has passed. A wrong clock causes at most one extra
// read, or a reason that comes too late.
const bindingGrace = 10 * time.Second

// release deletes the claim of the side that releases the ordinal. BEFORE that, its manifest is on the volume
// and the volume is Retain. Both are read live in this very look.
func (v mover) release(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	claim, err := v.claimOf(ctx, m.From, vol)
	if err != nil {
		return plans.Observation{}, err
	}
	by, err := v.by(vol.Template)
	if err != nil {
		return plans.Observation{}, err
	}
	if claim == nil {
		return v.released(ctx, m, vol, by)
	}
	if m.Unsure() && claim.UID != vol.Claim {
		// This is the claim of the side that was only about to take the ordinal, or take it back. Nothing ran on it; the
		// UID to delete is its own.
		if !m.Stamp.Mine(claim) {
			return plans.Stop(reasons.ClaimForeign, fmt.Sprintf("claim %s of %s was not created by this plan; delete it if it is not needed", claim.Name, v.Plan.On(m.From))), nil
		}
		vol.Claim = claim.UID
	}
	if claim.UID != vol.Claim {
		return plans.Stop(reasons.ClaimForeign, fmt.Sprintf("claim %s of %s is not the claim that this plan releases (UID %s, expected %s); find out what created it", claim.Name, v.Plan.On(m.From), claim.UID, vol.Claim)), nil
	}
	if claim.DeletionTimestamp != nil {
		return by.release(ctx, m, claim)
	}
	if why := m.Stamp.Barred(claim); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s %s", claim.Name, why)), nil
	}
	return v.letGo(ctx, m, vol, claim)
}

// released accepts an absent claim only if this plan may have deleted it, and once the volume reflects the
// deletion.
func (v mover) released(ctx context.Context, m plans.StepContext, vol plans.Volume, by handover) (plans.Observation, error) {
	if m.Reversed {
		return by.back(ctx, m, vol)
	}
	name := v.claim(m.From, vol)
	if !m.Began && !m.Resumed && m.From == plans.Source { // during an abort, this claim is not needed again
		return plans.Stop(reasons.ClaimDeleted, fmt.Sprintf("claim %s of %s was deleted by another writer; its volume %s is protected, `abort` recreates the claim", name, v.Plan.On(m.From), vol.Name)), nil
	}
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	return plans.Done(), nil // whether the binder has seen it or not: its next write to the volume fails if Reserve was faster
}

// letGo returns the two writes of a release in turn: the manifest, if the claim has changed since it was
// saved, then the deletion.
func (v mover) letGo(ctx context.Context, m plans.StepContext, vol plans.Volume, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if users, err := v.users(ctx, m.From, claim); err != nil || users != "" {
		return plans.Wait(reasons.ClaimMounted, fmt.Sprintf("claim %s of %s is still mounted by pod %s; wait for it or delete it", claim.Name, v.Plan.On(m.From), users)), err
	}
	if kept := KeptBy(claim); kept != "" { // a deletion cannot be undone, and abort would wait for the finalizer too
		return plans.Wait(reasons.ClaimKept, fmt.Sprintf("claim %s of %s is kept by %s, and is deleted only after that is removed; abort returns the ordinal together with the claim", claim.Name, v.Plan.On(m.From), kept)), nil
	}
	volume, err := v.Live().Volume(ctx, m.From, vol.Name) // the last look before the claim goes (S4)
	if err != nil {
		return plans.Observation{}, err
	}
	pv := volume.Object()
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	if !m.Stamp.Mine(pv) { // the user's own policy, saved on the volume, would be lost
		return plans.Stop(reasons.VolumeMarkLost, fmt.Sprintf("volume %s no longer carries the mark of this plan; put its annotations stsmigrate.dev/* back", pv.Name)), nil
	}
	if !m.Reversed { // otherwise nothing ran on it
		if s, err := v.retain(ctx, m, claim, pv); err != nil || s.Standing != plans.After {
			return s, err
		}
	}
	return plans.Write(fmt.Sprintf("%s: delete claim %s (volume %s is protected)", m.From, claim.Name, vol.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.DeleteClaim(ctx, v.On[m.From], claim, volume) }), nil
}
