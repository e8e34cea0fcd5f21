package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// PVCProtection is the finalizer that keeps a claim while a pod mounts it.
const PVCProtection = "kubernetes.io/pvc-protection"

// Departing returns the look at a wave that is about to leave a side (S17). All conditions that Release,
// Reserve and Claim will require of the wave's claims and volumes, on both sides, are checked while its pods
// are still up. After: the Undo has the volumes in a Flight. It writes only what the user has vouched for (Assurance),
// and takes a claim away that was made too early.
func Departing(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	v := departure{keeper{objects{clusters.Pair{Plan: p, On: on}}}}
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		if s, err := sharedVolumes(v).receives(ctx, m); err != nil || s.Standing != plans.After {
			return s, err
		}
		flight := &plans.Flight{Ordinals: m.Ordinals, From: m.From, Seq: m.Seq}
		for o := range m.Ordinals.All() {
			for _, c := range p.Moved() {
				vol, s, err := v.departing(ctx, m, c.Template, o)
				if err != nil || s.Standing != plans.After {
					return s, err
				}
				flight.Volumes = append(flight.Volumes, vol)
			}
		}
		done := plans.Done()
		done.Undo.Flight = flight
		return done, nil
	}
}

// departure looks at the volumes of a wave that is up: they are protected, and everything is asked that the other side
// will need of them.
type departure struct{ keeper }

// departing looks at one volume.
func (v departure) departing(ctx context.Context, m plans.StepContext, template string, ordinal int32) (vol plans.Volume, s plans.Observation, err error) {
	claim, pv, why, err := v.bound(ctx, m.From, template, ordinal)
	if err != nil || why != "" {
		return vol, plans.Stop(reasons.BindingBroken, why), err
	}
	vol = plans.Volume{Ordinal: ordinal, Template: template, Claim: claim.UID, Name: pv.Name, Handle: HandleFor(v.Plan, pv)}
	if kept := KeptBy(claim); kept != "" {
		return vol, plans.Wait(reasons.ClaimKept, fmt.Sprintf("claim %s of %s is kept by %s; no pod is scaled down until that is removed", claim.Name, v.Plan.On(m.From), kept)), nil
	}
	if owner := v.owned(m.From, claim); owner != nil {
		return vol, *owner, nil
	}
	if s, err := v.ours(ctx, m, claim, pv, vol); err != nil || s.Standing != plans.After {
		return vol, s, err
	}
	if s, err := v.inTheWay(ctx, m, vol); err != nil || s.Standing != plans.After {
		return vol, s, err
	}
	s, err = v.otherObject(ctx, m, vol, pv)
	return vol, s, err
}

// KeptBy names the finalizers of a claim other than Kubernetes' own protection. They belong to a snapshot
// that is being taken of it, a replication or a clone, and do not end with the pod.
func KeptBy(claim *corev1.PersistentVolumeClaim) string {
	others := slices.DeleteFunc(slices.Clone(claim.Finalizers), func(f string) bool { return f == PVCProtection })
	if len(others) == 0 {
		return ""
	}
	return "finalizer " + strings.Join(others, ", ")
}

// ours requires that this plan protects the volume, and that the user's policy is saved on it. The user's word takes no
// volume in the place of another one that is protected for the claim: the data is on that one (S5).
func (v departure) ours(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, vol plans.Volume) (plans.Observation, error) {
	why := v.unsafe(pv, vol)
	switch {
	case m.Stamp.Barred(pv) != "":
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s %s", pv.Name, m.Stamp.Barred(pv))), nil
	case why == "" && v.marked(m, pv):
		return plans.Done(), nil
	}
	switch former, err := v.SavedOn(ctx, m.From, claim.Name, pv.Name); {
	case err != nil || former != "":
		return plans.Stop(reasons.ClaimRecreated, fmt.Sprintf("claim %s of %s was recreated and is bound to volume %s, while the data is on volume %s, which this plan protects for it; have the claim bound to that one again, or take the annotations stsmigrate.dev/* off that one if the other shall be used", claim.Name, v.Plan.On(m.From), pv.Name, former)), err
	case m.Readopt && pv.DeletionTimestamp == nil:
		return v.retain(ctx, m, claim, pv)
	case why != "":
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	return plans.Stop(reasons.VolumeMarkLost, fmt.Sprintf("volume %s no longer carries the mark of this plan; put its annotations stsmigrate.dev/* back, or let it be protected again, with the policy that it has now, by --readopt", pv.Name)), nil
}

// inTheWay looks at what would take or hold the claim of the side that receives the ordinal: a stranger, whether there is
// a claim or not, and an object that has the claim's name.
func (v departure) inTheWay(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	if s, err := v.strange(ctx, m.To(), vol.Template, vol.Ordinal); err != nil || s.Standing != plans.After {
		return s, err
	}
	there, err := v.claimOf(ctx, m.To(), vol)
	switch {
	case err != nil || there == nil:
		return plans.Done(), err
	case there.DeletionTimestamp != nil:
		return plans.Wait(reasons.ClaimTerminating, fmt.Sprintf("claim %s of %s is being deleted (finalizers %s); no pod is scaled down before it is gone", there.Name, v.Plan.On(m.To()), strings.Join(there.Finalizers, ", "))), nil
	case !m.Stamp.Mine(there) || there.Spec.VolumeName != vol.Name:
		return plans.Stop(reasons.ClaimForeign, fmt.Sprintf("claim %s of %s has the name of the claim to create, and was not created by this plan; delete it if its data is not needed", there.Name, v.Plan.On(m.To()))), nil
	}
	return v.withdraw(ctx, m, vol, there)
}

// otherObject looks at the object that the other side has of the disk, where it has one of its own. It must be as this
// plan left it, or absent.
func (v departure) otherObject(ctx context.Context, m plans.StepContext, vol plans.Volume, own *corev1.PersistentVolume) (plans.Observation, error) {
	if v.mode(vol.Template).OneObject() {
		return plans.Done(), nil
	}
	to := m.To()
	pv, err := v.volumeOf(ctx, to, vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	if pv == nil {
		by, err := v.by(vol.Template)
		if err != nil {
			return plans.Observation{}, err
		}
		if why := by.missing(m, vol, own); why != "" {
			return plans.Stop(reasons.VolumeUnsafe, why), nil
		}
		return plans.Done(), nil // Reserve creates it
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, fmt.Sprintf("on the %s, %s", to, why)), nil
	}
	switch {
	case m.Stamp.Barred(pv) != "":
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s on the %s %s", pv.Name, to, m.Stamp.Barred(pv))), nil
	case !v.named(pv.Spec.ClaimRef, to, vol):
		return plans.Stop(reasons.VolumeClaimedElsewhere, fmt.Sprintf("volume %s on the %s is not promised to claim %s/%s; set its claimRef back", pv.Name, to, v.Plan.On(to).Namespace, v.claim(to, vol))), nil
	case v.marked(m, pv):
		return plans.Done(), nil
	case m.Readopt:
		return v.remark(m, pv, own), nil
	}
	return plans.Stop(reasons.VolumeMarkLost, fmt.Sprintf("volume %s on the %s no longer carries the marks of this plan; put its annotations stsmigrate.dev/* back, or let it be protected again, with the policy that it has now, by --readopt", pv.Name, to)), nil
}

// remark restores the marks of a volume, and its saved claim from the object of the other cluster.
func (v departure) remark(m plans.StepContext, pv, own *corev1.PersistentVolume) plans.Observation {
	next := pv.DeepCopy()
	m.Stamp.Put(next)
	if _, saved := next.Annotations[plans.PolicyAnnotation]; !saved {
		next.Annotations[plans.PolicyAnnotation] = string(pv.Spec.PersistentVolumeReclaimPolicy)
	}
	next.Annotations[plans.ClaimAnnotation] = own.Annotations[plans.ClaimAnnotation]
	return plans.Write(fmt.Sprintf("%s: volume %s: protected again, as the user has confirmed", m.To(), pv.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], pv, next) })
}
