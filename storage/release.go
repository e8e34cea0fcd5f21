package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// release deletes the claim of the side that lets go. BEFORE that, its manifest
// is on the volume and the volume is Retain, both read live in this very look.
func (v mover) release(ctx context.Context, m plans.Moment, vol plans.Volume) (plans.Sight, error) {
	claim, err := v.claimOf(ctx, m.From, vol.Template, m.Ordinal)
	if err != nil {
		return plans.Sight{}, err
	}
	if claim == nil {
		return v.released(ctx, m, vol)
	}
	if m.Turned {
		// The claim of the side that was only about to take the ordinal. Nothing
		// ran on it; its own UID is what we delete.
		if !m.Stamp.Mine(claim) {
			return plans.Stop(fmt.Sprintf("claim %s of %s was not made by this plan; delete it if nobody needs it", claim.Name, v.plan.On(m.From))), nil
		}
		vol.Claim = claim.UID
	}
	if claim.UID != vol.Claim {
		return plans.Stop(fmt.Sprintf("claim %s of %s is another object than the one that was to be released (UID %s, expected %s); find out who made it", claim.Name, v.plan.On(m.From), claim.UID, vol.Claim)), nil
	}
	if claim.DeletionTimestamp != nil {
		return v.terminating(ctx, m, claim)
	}
	if why := m.Stamp.Barred(claim); why != "" {
		return plans.Stop(fmt.Sprintf("claim %s %s", claim.Name, why)), nil
	}
	return v.letGo(ctx, m, vol, claim)
}

// released accepts an absent claim only if we may have deleted it, and once the
// volume has noticed.
func (v mover) released(ctx context.Context, m plans.Moment, vol plans.Volume) (plans.Sight, error) {
	if m.Turned {
		return plans.Done(), nil
	}
	name := v.plan.ClaimName(vol.Template, m.Ordinal)
	if !m.Began {
		return plans.Stop(fmt.Sprintf("claim %s of %s was deleted by somebody else; its volume %s is held, abort makes the claim again", name, v.plan.On(m.From), vol.Name)), nil
	}
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil {
		return plans.Sight{}, err
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(why), nil
	}
	if pv.Status.Phase == corev1.VolumeBound {
		return plans.Wait(fmt.Sprintf("volume %s: waiting for the binder to see that claim %s is gone", vol.Name, name)), nil
	}
	return plans.Done(), nil
}

// unsafe gives the reason why nothing about a volume may be changed: it is not
// the disk that was promised, or its data is not held (S4).
func (v mover) unsafe(pv *corev1.PersistentVolume, vol plans.Volume) string {
	switch {
	case pv == nil:
		return fmt.Sprintf("volume %s is gone; the disk is %s: check that it still exists", vol.Name, vol.Handle)
	case pv.DeletionTimestamp != nil:
		return fmt.Sprintf("volume %s is being deleted by somebody else", vol.Name)
	case pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return fmt.Sprintf("volume %s has reclaim policy %s, expected Retain: somebody changed it back; set it to Retain again", vol.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	if handle, _ := Handle(pv); handle != vol.Handle {
		return fmt.Sprintf("volume %s has handle %s, expected %s", vol.Name, handle, vol.Handle)
	}
	return ""
}

// letGo hands out the two writes of a release: the manifest, if the claim has
// changed since it was saved, then the deletion.
func (v mover) letGo(ctx context.Context, m plans.Moment, vol plans.Volume, claim *corev1.PersistentVolumeClaim) (plans.Sight, error) {
	if users, err := v.users(ctx, m.From, claim.Name); err != nil || users != "" {
		return plans.Wait(fmt.Sprintf("claim %s of %s is still mounted by pod %s; wait for it or delete it", claim.Name, v.plan.On(m.From), users)), err
	}
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil {
		return plans.Sight{}, err
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(why), nil
	}
	if !m.Stamp.Mine(pv) { // the user's own policy, kept on it, would be lost
		return plans.Stop(fmt.Sprintf("volume %s no longer carries the mark of this plan; put its annotations stsmigrate.dev/* back", pv.Name)), nil
	}
	if m.From == plans.Source { // the destination's claim was made from the saved one
		if s, err := v.retain(m, claim, pv); err != nil || s.Standing != plans.After {
			return s, err
		}
	}
	opts := &client.DeleteOptions{Preconditions: preconditions(claim)}
	return plans.Write(fmt.Sprintf("%s: delete claim %s (volume %s is held)", m.From, claim.Name, vol.Name), plans.Undo{},
		func(ctx context.Context) error { return v.on[m.From].Delete(ctx, claim, opts) }), nil
}

func (v mover) terminating(ctx context.Context, m plans.Moment, claim *corev1.PersistentVolumeClaim) (plans.Sight, error) {
	users, err := v.users(ctx, m.From, claim.Name)
	if err != nil {
		return plans.Sight{}, err
	}
	if users == "" {
		return plans.Wait(fmt.Sprintf("claim %s of %s is being deleted (finalizers %s)", claim.Name, v.plan.On(m.From), strings.Join(claim.Finalizers, ", "))), nil
	}
	return plans.Wait(fmt.Sprintf("claim %s of %s is being deleted, but pod %s still mounts it; wait for it or delete it", claim.Name, v.plan.On(m.From), users)), nil
}

// users names the pods, in whatever phase, that mount a claim.
func (v mover) users(ctx context.Context, side plans.Side, claim string) (string, error) {
	var pods corev1.PodList
	if err := v.on[side].List(ctx, &pods, client.InNamespace(v.plan.On(side).Namespace)); err != nil {
		return "", fmt.Errorf("listing pods on the %s: %w", side, err)
	}
	var names []string
	for _, p := range pods.Items {
		if Mounts(&p, claim) {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", "), nil
}

// Mounts says whether the pod names the claim among its volumes.
func Mounts(p *corev1.Pod, claim string) bool {
	for _, vol := range p.Spec.Volumes {
		if c := vol.PersistentVolumeClaim; c != nil && c.ClaimName == claim {
			return true
		}
	}
	return false
}
