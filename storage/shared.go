package storage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// sharedVolumes hands over what all ordinals of a set mount: not wave by wave, but once, in the steps Share and Unshare. In
// between, each side has a claim and a PersistentVolume object of its own for the disk, also within one cluster.
type sharedVolumes struct{ keeper }

// share creates a claim on the destination for each volume that the pod template names and all ordinals
// mount. This is done once, before the first ordinal moves, because the pods of both sides need the volume at
// the same time. The disk then has two volume objects, both Retain, until unshare deletes one of them.
func (v sharedVolumes) share(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	return v.eachShared(func(s plans.SharedVolume) (plans.Observation, error) {
		held, err := v.volumeOf(ctx, plans.Source, s.Volume)
		if err != nil {
			return plans.Observation{}, err
		}
		claim, err := v.Claim(ctx, plans.Source, s.Claim)
		if err != nil {
			return plans.Observation{}, err
		}
		if held == nil || claim == nil || held.Spec.ClaimRef == nil || held.Spec.ClaimRef.UID != claim.UID {
			return plans.Stop(reasons.BindingBroken, fmt.Sprintf("claim %s of %s and volume %s do not name each other; repair the binding first", s.Claim, v.Plan.Source, s.Volume)), nil
		}
		if handle, _ := Handle(held); !Means(held, s.Handle) {
			return plans.Stop(reasons.OtherDisk, fmt.Sprintf("volume %s has handle %s, expected %s", held.Name, handle, s.Handle)), nil
		}
		if observed, err := v.retain(ctx, m, claim, held); err != nil || observed.Standing != plans.After {
			return observed, err
		}
		return v.second(ctx, m, s, held)
	})
}

// second creates the volume and then the claim of the destination, in this order (S5).
func (v sharedVolumes) second(ctx context.Context, m plans.StepContext, s plans.SharedVolume, held *corev1.PersistentVolume) (plans.Observation, error) {
	name := v.Plan.SecondVolume(s)
	pv, err := v.volumeOf(ctx, plans.Destination, name)
	if err != nil {
		return plans.Observation{}, err
	}
	if pv == nil {
		next, err := v.twice(s, held)
		if err != nil {
			return plans.Stop(reasons.VolumeNotTranslated, err.Error()), nil
		}
		m.Stamp.Put(next)
		return plans.Write(fmt.Sprintf("destination: create volume %s for shared disk %s", name, s.Handle), plans.Undo{},
			func(ctx context.Context) error {
				return writes.Copy(ctx, v.On[plans.Source], held, v.On[plans.Destination], next)
			}), nil
	}
	if !m.Stamp.Mine(pv) || m.Stamp.Barred(pv) != "" {
		return plans.Stop(reasons.VolumeForeign, fmt.Sprintf("volume %s on the destination was not created by this plan; delete it if it is not needed (reclaim policy Retain first)", name)), nil
	}
	claim, err := v.Claim(ctx, plans.Destination, s.Claim)
	if err != nil {
		return plans.Observation{}, err
	}
	if claim == nil {
		return v.makeClaim(m, plans.Volume{Name: name, Handle: s.Handle}, s.Claim, pv)
	}
	return v.inspect(m, claim, pv), nil
}

// twice returns the second volume object of a shared volume.
func (v sharedVolumes) twice(s plans.SharedVolume, held *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if !v.Plan.OneCluster() {
		var err error
		if held, err = AsCSI(held); err != nil {
			return nil, err
		}
	}
	next := VolumeFrom(held, RefTo(v.Plan.Destination.Namespace, s.Claim, ""), v.Plan.Storage)
	next.Name = v.Plan.SecondVolume(s)
	v.label(next)
	return next, nil
}

// unshare leaves the shared volumes to the side that keeps the ordinals. The other side's claim is deleted
// first, then its volume object while that is Retain. The user's policy is restored LAST (S15).
func (v sharedVolumes) unshare(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	s, err := v.eachShared(func(s plans.SharedVolume) (plans.Observation, error) {
		lost, err := v.volumeOf(ctx, m.From, v.sharedOn(m.From, s))
		kept, err2 := v.Live().Volume(ctx, m.To(), v.sharedOn(m.To(), s)) // the last look before the other claim goes (S4)
		if err = errors.Join(err, err2); err != nil {
			return plans.Observation{}, err
		}
		claim, observed, err := v.lasts(ctx, m, s, kept.Object())
		if err != nil || observed.Standing != plans.After {
			return observed, err
		}
		if observed, err := v.giveUp(ctx, m, s, lost, kept, claim); err != nil || observed.Standing != plans.After {
			return observed, err
		}
		if observed, err := v.unmarkClaim(ctx, m, claim); err != nil || observed.Standing != plans.After {
			return observed, err
		}
		return v.restore(ctx, m, claim)
	})
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	return settlement(v).abandoned(ctx, m)
}

// sharedOn returns the name of the object that a side has of a shared volume.
func (v sharedVolumes) sharedOn(side plans.Side, s plans.SharedVolume) string {
	return map[plans.Side]string{plans.Source: s.Volume, plans.Destination: v.Plan.SecondVolume(s)}[side]
}

// receives requires the claims of the shared volumes of the side where a wave arrives: its pods wait for them (S17).
func (v sharedVolumes) receives(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	return v.eachShared(func(s plans.SharedVolume) (plans.Observation, error) {
		pv, err := v.volumeOf(ctx, m.To(), v.sharedOn(m.To(), s))
		if err != nil {
			return plans.Observation{}, err
		}
		_, observed, err := v.lasts(ctx, m, s, pv)
		return observed, err
	})
}

// lasts returns the claim of the side that keeps a shared volume. BEFORE the other side's claim is given up it must be one
// that stays, and be bound to the volume: with the policy Delete, the disk would go with the last claim (S4). A claim that
// was deleted does not come back by itself; one that the user creates in its place is not stamped, and counts like it (L6).
func (v sharedVolumes) lasts(ctx context.Context, m plans.StepContext, s plans.SharedVolume, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, plans.Observation, error) {
	to, name, volume := v.Plan.On(m.To()), s.Claim, v.sharedOn(m.To(), s)
	kept, err := v.Claim(ctx, m.To(), name)
	switch {
	case err != nil:
		return nil, plans.Observation{}, err
	case kept == nil:
		return nil, plans.Stop(reasons.SharedClaimDeleted, fmt.Sprintf("claim %s of %s is gone; its volume %s stays at Retain: recreate the claim for it, and `resume`", name, to, volume)), nil
	case kept.DeletionTimestamp != nil:
		return nil, plans.Stop(reasons.SharedClaimDeleted, fmt.Sprintf("claim %s of %s is being deleted by another writer, which cannot be undone; its volume stays at Retain: delete the pods that mount it, recreate it for volume %s, and `resume`", name, to, volume)), nil
	case kept.Spec.VolumeName != "" && kept.Spec.VolumeName != volume: // the user has replaced the disk
		return kept, plans.Done(), nil
	case kept.Spec.VolumeName == "" || pv != nil && (pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != kept.UID):
		return nil, plans.Wait(reasons.ClaimNotBound, fmt.Sprintf("claim %s of %s is %s; waiting for it to be bound to volume %s", name, to, kept.Status.Phase, volume)), nil
	case pv == nil:
		return nil, plans.Stop(reasons.VolumeDeleted, fmt.Sprintf("volume %s of claim %s of %s is gone, and the other side gives up nothing more of its disk; recreate the volume for the same disk and claim, and `resume`", volume, name, to)), nil
	}
	return kept, plans.Done(), nil
}

// giveUp deletes the claim and then the volume object of the side that releases the ordinals. BEFORE the claim goes, the
// volume that is kept must be an object for the same disk, and one that stays: a deletion cannot be undone.
func (v sharedVolumes) giveUp(ctx context.Context, m plans.StepContext, s plans.SharedVolume, lost *corev1.PersistentVolume, kept reads.Seen[*corev1.PersistentVolume], last *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	claim, err := v.Claim(ctx, m.From, s.Claim)
	if err != nil {
		return plans.Observation{}, err
	}
	ours := lost != nil && m.Stamp.Mine(lost)
	dropped := claim != nil && (m.Stamp.Mine(claim) || ours && lost.Spec.ClaimRef != nil && lost.Spec.ClaimRef.UID == claim.UID)
	if (ours || dropped) && lost != nil && kept.Object() != nil {
		if s := v.inherits(m, claim, last, lost, kept.Object()); s.Standing != plans.After {
			return s, nil
		}
	}
	switch {
	case dropped:
		return v.dropClaim(ctx, m, claim)
	case !ours || kept.Object() == nil: // the user has replaced the disk (lasts): abandoned leaves the last object for the former one
		return plans.Done(), nil
	}
	return v.dropVolume(ctx, m, lost, kept, s.Claim)
}

// inherits requires that a disk that is given up has another object that stays, and carries its size to that if it was
// expanded. BEFORE that the kept claim must request as much. Its request is the user's to raise, because its cluster then
// expands file systems that are mounted; a claim without a class cannot be expanded. A larger request alone tells nothing:
// admission may have rounded it up.
func (v sharedVolumes) inherits(m plans.StepContext, claim, last *corev1.PersistentVolumeClaim, lost, kept *corev1.PersistentVolume) plans.Observation {
	if s := outlived(m, lost, kept); s.Standing != plans.After {
		return s
	}
	switch why := m.Stamp.Barred(kept); {
	case !m.Stamp.Mine(kept) || last.Spec.VolumeName != kept.Name || lost.Spec.Capacity.Storage().Cmp(*kept.Spec.Capacity.Storage()) <= 0:
		return plans.Done()
	case claim != nil && claim.Spec.VolumeName == lost.Name && ptr.Deref(last.Spec.StorageClassName, "") != "" && claim.Spec.Resources.Requests.Storage().Cmp(*last.Spec.Resources.Requests.Storage()) > 0:
		asked := claim.Spec.Resources.Requests.Storage()
		return plans.Stop(reasons.SharedClaimResized, fmt.Sprintf("claim %s of %s was expanded to %s, and that of %s, which is kept, requests %s; expand the latter to %s too, and `resume`", claim.Name, v.Plan.On(m.From), asked, v.Plan.On(m.To()), last.Spec.Resources.Requests.Storage(), asked))
	case why != "":
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s %s", kept.Name, why))
	}
	next := kept.DeepCopy()
	next.Spec.Capacity = lost.Spec.Capacity
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("volume %s on the %s: size %s, as on the %s", kept.Name, m.To(), next.Spec.Capacity.Storage(), m.From), plans.Undo{},
		func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], kept, next) })
}

func (v sharedVolumes) eachShared(look func(plans.SharedVolume) (plans.Observation, error)) (plans.Observation, error) {
	for _, s := range v.Plan.Shared {
		if observed, err := look(s); err != nil || observed.Standing != plans.After {
			return observed, err
		}
	}
	return plans.Done(), nil
}
