package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// keeper has what S4, S5 and S15 demand of every volume, in whatever mode it is handed over: what it must be before anything
// about it is changed, and the writes that protect it, give it up and restore it. The looks ask it before they ask a mode
// (handover), so no mode can forget it.
type keeper struct{ objects }

// unsafe returns the reason why nothing about a volume may be changed, or "". The volume is not the promised
// disk, or its data is not protected (S4).
func (v keeper) unsafe(pv *corev1.PersistentVolume, vol plans.Volume) string {
	switch {
	case pv == nil:
		return fmt.Sprintf("volume %s is gone; the disk is %s: check that it still exists", vol.Name, vol.Handle)
	case pv.DeletionTimestamp != nil:
		return fmt.Sprintf("volume %s is being deleted by another writer", vol.Name)
	case pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return fmt.Sprintf("volume %s has reclaim policy %s, expected Retain: it was changed back by %s; set it to Retain again", vol.Name, pv.Spec.PersistentVolumeReclaimPolicy, plans.Changer(pv, "spec", "persistentVolumeReclaimPolicy"))
	}
	if handle, _ := Handle(pv); !Means(pv, vol.Handle) {
		return fmt.Sprintf("volume %s has handle %s, expected %s", vol.Name, handle, vol.Handle)
	}
	return ""
}

// kept returns the reason why the volume object of the side that releases the ordinal is not as the plan left it, or "".
func (v keeper) kept(m plans.StepContext, vol plans.Volume, held *corev1.PersistentVolume) string {
	switch why := v.unsafe(held, vol); {
	case why != "":
		return why
	case !m.Stamp.Mine(held):
		return fmt.Sprintf("volume %s on the %s is not protected by this plan", held.Name, m.From)
	case !v.named(held.Spec.ClaimRef, m.From, vol):
		return fmt.Sprintf("volume %s on the %s has another claimRef than %s/%s, or none: any claim may take it; set it back", held.Name, m.From, v.Plan.On(m.From).Namespace, v.claim(m.From, vol))
	}
	return ""
}

// marked reports whether a volume carries all its annotations: the plan that owns it, its policy, and the
// claim of the source.
func (v keeper) marked(m plans.StepContext, pv *corev1.PersistentVolume) bool {
	_, saved := pv.Annotations[plans.PolicyAnnotation]
	_, err := ClaimFrom(pv, v.Plan.On(m.To()).Namespace)
	return saved && err == nil && m.Stamp.Mine(pv)
}

// dropClaim deletes a claim that no pod mounts, and that no later process has written. A live read must show its volume
// as Retain at that moment: with Delete, the disk itself would be destroyed (S4).
func (v keeper) dropClaim(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if claim.DeletionTimestamp != nil {
		return v.terminating(ctx, m, claim)
	}
	if why := m.Stamp.Barred(claim); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s of %s %s", claim.Name, v.Plan.On(m.From), why)), nil
	}
	if users, err := v.users(ctx, m.From, claim); err != nil || users != "" {
		return plans.Stop(reasons.ClaimMounted, fmt.Sprintf("claim %s of %s is mounted by pod %s; delete the pod", claim.Name, v.Plan.On(m.From), users)), err
	}
	remove := func(ctx context.Context) error { return writes.DeleteUnbound(ctx, v.On[m.From], claim) }
	if claim.Spec.VolumeName != "" {
		volume, err := v.Live().Volume(ctx, m.From, claim.Spec.VolumeName)
		if err != nil {
			return plans.Observation{}, err
		}
		remove = func(ctx context.Context) error { return writes.DeleteClaim(ctx, v.On[m.From], claim, volume) }
		if pv := volume.Object(); pv != nil && pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			return plans.Stop(reasons.VolumeNotRetained, fmt.Sprintf("volume %s on the %s has reclaim policy %s, expected Retain: deleting its claim %s would destroy the disk; set it to Retain", pv.Name, m.From, pv.Spec.PersistentVolumeReclaimPolicy, claim.Name)), nil
		}
	}
	return plans.Write(fmt.Sprintf("%s: delete claim %s, which is no longer needed", m.From, claim.Name), plans.Undo{}, remove), nil
}

// terminating waits for our deletion. A pod that mounts the claim delays it.
func (v keeper) terminating(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	waits := plans.Wait(reasons.ClaimTerminating, fmt.Sprintf("claim %s of %s is being deleted (finalizers %s)", claim.Name, v.Plan.On(m.From), strings.Join(claim.Finalizers, ", ")))
	if time.Since(claim.DeletionTimestamp.Time) < bindingGrace {
		return waits, nil
	}
	users, err := v.users(ctx, m.From, claim)
	if err != nil || users == "" {
		return waits, err
	}
	return plans.Wait(reasons.ClaimMounted, fmt.Sprintf("claim %s of %s is being deleted, but pod %s still mounts it; wait for it or delete it", claim.Name, v.Plan.On(m.From), users)), nil
}

// dropVolume deletes a volume object that is Retain, while another object for the same disk is kept.
func (v keeper) dropVolume(ctx context.Context, m plans.StepContext, old *corev1.PersistentVolume, kept reads.Seen[*corev1.PersistentVolume], claim string) (plans.Observation, error) {
	if s := outlived(m, old, kept.Object()); s.Standing != plans.After {
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
		plans.Undo{}, func(ctx context.Context) error { return writes.DeleteVolume(ctx, v.On[m.From], old, kept) }), nil
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

// label adds the plan label to a volume that the plan creates. The admission policy for new volumes is
// evaluated for the volumes that carry this label.
func (v keeper) label(pv *corev1.PersistentVolume) {
	if pv.Labels == nil {
		pv.Labels = map[string]string{}
	}
	pv.Labels[plans.PlanLabel] = v.Plan.Name
}
