package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

// bindingGrace is how long the binding of a claim, or the deletion of one that nobody
// mounts, takes at most. Before that, nobody needs to know what it waits for. A
// clock that is wrong makes for a read too many or a reason too late, no more.
const bindingGrace = 10 * time.Second

// release deletes the claim of the side that lets go. BEFORE that, its manifest
// is on the volume and the volume is Retain, both read live in this very look.
func (v mover) release(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	claim, err := v.claimOf(ctx, m.From, vol)
	if err != nil {
		return plans.Observation{}, err
	}
	if claim == nil {
		return v.released(ctx, m, vol)
	}
	if m.Reversed {
		// The claim of the side that was only about to take the ordinal. Nothing
		// ran on it; its own UID is what we delete.
		if !m.Stamp.Mine(claim) {
			return plans.Stop(fmt.Sprintf("claim %s of %s was not made by this plan; delete it if nobody needs it", claim.Name, v.Plan.On(m.From))), nil
		}
		vol.Claim = claim.UID
	}
	if claim.UID != vol.Claim {
		return plans.Stop(fmt.Sprintf("claim %s of %s is another object than the one that was to be released (UID %s, expected %s); find out who made it", claim.Name, v.Plan.On(m.From), claim.UID, vol.Claim)), nil
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
func (v mover) released(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	if m.Reversed {
		return plans.Done(), nil
	}
	name := v.claim(vol)
	if !m.Began && m.From == plans.Source { // on the way back, nobody will need it again
		return plans.Stop(fmt.Sprintf("claim %s of %s was deleted by somebody else; its volume %s is protected, abort makes the claim again", name, v.Plan.On(m.From), vol.Name)), nil
	}
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil {
		return plans.Observation{}, err
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
		return fmt.Sprintf("volume %s has reclaim policy %s, expected Retain: it was changed back by %s; set it to Retain again", vol.Name, pv.Spec.PersistentVolumeReclaimPolicy, plans.Writer(pv, "spec", "persistentVolumeReclaimPolicy"))
	}
	if handle, _ := Handle(pv); !Means(pv, vol.Handle) {
		return fmt.Sprintf("volume %s has handle %s, expected %s", vol.Name, handle, vol.Handle)
	}
	return ""
}

// letGo hands out the two writes of a release: the manifest, if the claim has
// changed since it was saved, then the deletion.
func (v mover) letGo(ctx context.Context, m plans.StepContext, vol plans.Volume, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if users, err := v.users(ctx, m.From, claim); err != nil || users != "" {
		return plans.Wait(fmt.Sprintf("claim %s of %s is still mounted by pod %s; wait for it or delete it", claim.Name, v.Plan.On(m.From), users)), err
	}
	if kept := KeptBy(claim); kept != "" { // a deletion could not be taken back, and abort would wait for it too
		return plans.Wait(fmt.Sprintf("claim %s of %s is kept by %s, and is not deleted before that has let go of it; abort brings the ordinal back with it", claim.Name, v.Plan.On(m.From), kept)), nil
	}
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(why), nil
	}
	if !m.Stamp.Mine(pv) { // the user's own policy, kept on it, would be lost
		return plans.Stop(fmt.Sprintf("volume %s no longer carries the mark of this plan; put its annotations stsmigrate.dev/* back", pv.Name)), nil
	}
	if m.From == plans.Source || !m.Reversed { // else nothing ran on it
		if s, err := v.retain(ctx, m, claim, pv); err != nil || s.Standing != plans.After {
			return s, err
		}
	}
	return plans.Write(fmt.Sprintf("%s: delete claim %s (volume %s is protected)", m.From, claim.Name, vol.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.Delete(ctx, v.On[m.From], claim) }), nil
}

// terminating waits for our deletion, which a pod that mounts the claim keeps
// back.
func (v mover) terminating(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if time.Since(claim.DeletionTimestamp.Time) < bindingGrace {
		return plans.Wait(fmt.Sprintf("claim %s of %s is being deleted (finalizers %s)", claim.Name, v.Plan.On(m.From), strings.Join(claim.Finalizers, ", "))), nil
	}
	users, err := v.users(ctx, m.From, claim)
	if err != nil {
		return plans.Observation{}, err
	}
	if users == "" {
		return plans.Wait(fmt.Sprintf("claim %s of %s is being deleted (finalizers %s)", claim.Name, v.Plan.On(m.From), strings.Join(claim.Finalizers, ", "))), nil
	}
	return plans.Wait(fmt.Sprintf("claim %s of %s is being deleted, but pod %s still mounts it; wait for it or delete it", claim.Name, v.Plan.On(m.From), users)), nil
}

// users names the pods, in whatever phase, that mount a claim.
//
// A claim with the usual finalizer does not go while a pod mounts it: the API
// server's side reads that live before it takes the finalizer off. Our own look is
// then only there to wait before the deletion rather than after it, and may come
// out of the API server's watch cache. Without the finalizer it is the proof (S1).
func (v mover) users(ctx context.Context, side plans.Side, claim *corev1.PersistentVolumeClaim) (string, error) {
	opts := []client.ListOption{client.InNamespace(v.Plan.On(side).Namespace)}
	if controllerutil.ContainsFinalizer(claim, "kubernetes.io/pvc-protection") {
		opts = append(opts, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	}
	var pods corev1.PodList
	if err := v.On[side].List(ctx, &pods, opts...); err != nil {
		return "", fmt.Errorf("listing pods on the %s: %w", side, err)
	}
	return Users(pods.Items, claim.Name), nil
}

// Users names the pods, in whatever phase, that mount a claim.
func Users(pods []corev1.Pod, claim string) string {
	var names []string
	for i := range pods {
		if Mounts(&pods[i], claim) {
			names = append(names, pods[i].Name)
		}
	}
	return strings.Join(names, ", ")
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
