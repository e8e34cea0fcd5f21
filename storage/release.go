package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
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
	if claim == nil {
		return v.released(ctx, m, vol)
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
		return v.going(ctx, m, claim)
	}
	if why := m.Stamp.Barred(claim); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s %s", claim.Name, why)), nil
	}
	return v.letGo(ctx, m, vol, claim)
}

// released accepts an absent claim only if this plan may have deleted it, and once the volume reflects the
// deletion.
func (v mover) released(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	if m.Reversed {
		return v.sealedAgain(ctx, m, vol)
	}
	name := v.claim(vol)
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

// sealedAgain seals the volume object of the side that was only about to take the ordinal, in another cluster. A process
// that was fenced may still create its claim there, and the ordinal will be up on the other side (S20).
func (v mover) sealedAgain(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	if v.Plan.OneCluster() {
		return plans.Done(), nil
	}
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil || pv == nil || !m.Stamp.Mine(pv) || !v.named(pv.Spec.ClaimRef, m.From, vol) || pv.Spec.ClaimRef.UID != "" {
		return plans.Done(), err // it cannot be had, or is for others to settle
	}
	if why := m.Stamp.Barred(pv); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s on the %s %s", pv.Name, m.From, why)), nil
	}
	return v.point(m, vol, pv, m.From, vol.Claim), nil
}

// unsafe returns the reason why nothing about a volume may be changed, or "". The volume is not the promised
// disk, or its data is not protected (S4).
func (v mover) unsafe(pv *corev1.PersistentVolume, vol plans.Volume) string {
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

// letGo returns the two writes of a release in turn: the manifest, if the claim has changed since it was
// saved, then the deletion.
func (v mover) letGo(ctx context.Context, m plans.StepContext, vol plans.Volume, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if users, err := v.users(ctx, m.From, claim); err != nil || users != "" {
		return plans.Wait(reasons.ClaimMounted, fmt.Sprintf("claim %s of %s is still mounted by pod %s; wait for it or delete it", claim.Name, v.Plan.On(m.From), users)), err
	}
	if kept := KeptBy(claim); kept != "" { // a deletion cannot be undone, and abort would wait for the finalizer too
		return plans.Wait(reasons.ClaimKept, fmt.Sprintf("claim %s of %s is kept by %s, and is deleted only after that is removed; abort returns the ordinal together with the claim", claim.Name, v.Plan.On(m.From), kept)), nil
	}
	pv, err := v.volumeOf(clusters.Live(ctx), m.From, vol.Name) // the last look before the claim goes (S4)
	if err != nil {
		return plans.Observation{}, err
	}
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
		func(ctx context.Context) error { return writes.Delete(ctx, v.On[m.From], claim) }), nil
}

// going waits for the end of a claim that is being deleted. Between two clusters it waits only for the pods that mount
// the claim. The scheduler and the kubelet admit no pod with a claim that is being deleted, so once none mounts it,
// none ever will. The pod of the ordinal counts until its own watch has reported its end: what else mounts the claim
// has been reported by then (S1).
func (v mover) going(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if v.Plan.OneCluster() {
		return v.terminating(ctx, m, claim)
	}
	pods, err := v.EveryPod(ctx, m.From)
	if err != nil {
		return plans.Observation{}, err
	}
	if users := Users(pods, claim.Name); users != "" {
		return v.terminating(ctx, m, claim)
	}
	return plans.Done(), nil
}

// terminating waits for our deletion. A pod that mounts the claim delays it.
func (v mover) terminating(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
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

// users names the pods, in any phase, that mount a claim.
//
// A claim with the usual finalizer is not removed while a pod mounts it: the controller in the control plane
// reads the pods live before it removes the finalizer. This read then only decides whether to wait before the
// deletion rather than after it, and a kept list will do. Without the finalizer, this read is the proof (S1).
func (v mover) users(ctx context.Context, side plans.Side, claim *corev1.PersistentVolumeClaim) (string, error) {
	if controllerutil.ContainsFinalizer(claim, PVCProtection) {
		pods, err := v.EveryPod(ctx, side)
		return Users(pods, claim.Name), err
	}
	var pods corev1.PodList
	if err := v.On[side].List(ctx, &pods, client.InNamespace(v.Plan.On(side).Namespace)); err != nil {
		return "", fmt.Errorf("listing pods on the %s: %w", side, err)
	}
	return Users(pods.Items, claim.Name), nil
}

// Users names the pods, in any phase, that mount a claim.
func Users(pods []corev1.Pod, claim string) string {
	var names []string
	for i := range pods {
		if Mounts(&pods[i], claim) {
			names = append(names, pods[i].Name)
		}
	}
	return strings.Join(names, ", ")
}

// Mounts reports whether the pod names the claim among its volumes.
func Mounts(p *corev1.Pod, claim string) bool {
	for _, vol := range p.Spec.Volumes {
		if c := vol.PersistentVolumeClaim; c != nil && c.ClaimName == claim {
			return true
		}
	}
	return false
}
