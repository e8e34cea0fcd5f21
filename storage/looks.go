package storage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// mover executes the storage steps of one plan. Its clients read live.
type mover struct {
	clusters.Pair
	ends *ends
}

// Looks returns the looks of this package for one plan. The clients must read from the API server, never from
// a cache: every gate here decides on what it reads. now is the clock of this process; without one, a grace period that
// must be over never is.
func Looks(p *plans.Plan, on map[plans.Side]client.Client, now func() time.Time) map[plans.Op]plans.Look {
	v := mover{clusters.Pair{Plan: p, On: on}, &ends{now: now}}
	return map[plans.Op]plans.Look{
		plans.Protect: v.protect,
		plans.Vacate:  v.vacate,
		plans.Release: v.perVolume(v.release),
		plans.Reserve: v.free(v.perVolume(v.reserve)),
		plans.Claim:   v.free(v.perVolume(v.take)),
		plans.Settle:  v.settle,
		plans.Share:   v.share,
		plans.Unshare: v.unshare,
	}
}

// one is the part of a look that concerns one volume of the wave.
type one func(context.Context, plans.StepContext, plans.Volume) (plans.Observation, error)

// perVolume looks at every volume of the wave and returns all writes that are due, so that binder, protection
// and provisioner work on all volumes at the same time. Nothing is written while the observation of one of
// them is Conflict.
func (v mover) perVolume(look one) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		if len(v.Plan.Moved()) == 0 {
			return plans.Done(), nil
		}
		if m.Reversed && !m.InFlight() {
			return plans.Done(), nil // it never left
		}
		if !m.InFlight() {
			return plans.Stop(reasons.JournalIncomplete, unknown(m)), nil
		}
		parts := make([]plans.Observation, len(m.Flight.Volumes))
		for i, vol := range m.Flight.Volumes {
			var err error
			if parts[i], err = look(ctx, m, vol); err != nil {
				return plans.Observation{}, err
			}
		}
		return plans.Together(parts), nil
	}
}

func unknown(m plans.StepContext) string {
	return fmt.Sprintf("the journal does not know the pod and the volumes of ordinals %s; was it edited?", m.Ordinals)
}

// claimOf reads the claim of a volume on a side. It returns nil if there is none.
func (v mover) claimOf(ctx context.Context, side plans.Side, vol plans.Volume) (*corev1.PersistentVolumeClaim, error) {
	return v.Claim(ctx, side, v.claim(vol))
}

// claim returns the name of the claim of a volume, which is the same on both sides.
func (v mover) claim(vol plans.Volume) string { return v.Plan.ClaimName(vol.Template, vol.Ordinal) }

// volumeOf reads a volume. It returns nil if there is none.
func (v mover) volumeOf(ctx context.Context, side plans.Side, name string) (*corev1.PersistentVolume, error) {
	return clusters.Get[corev1.PersistentVolume](ctx, v.On[side], "", name, "the "+string(side))
}

// named reports whether a claimRef names the claim of a volume on this side.
func (v mover) named(ref *corev1.ObjectReference, side plans.Side, vol plans.Volume) bool {
	return ref != nil && ref.Namespace == v.Plan.On(side).Namespace && ref.Name == v.claim(vol)
}

func uidOf(c *corev1.PersistentVolumeClaim) types.UID {
	if c == nil {
		return ""
	}
	return c.UID
}

// Volumes lists the volumes that the moved claims of an ordinal are bound to. reason is set if they cannot be
// determined.
func Volumes(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, ordinal int32) (vols []plans.Volume, reason string, err error) {
	v := mover{Pair: clusters.Pair{Plan: p, On: on}}
	for _, c := range p.Moved() {
		claim, pv, reason, err := v.bound(ctx, side, c.Template, ordinal)
		if err != nil || reason != "" {
			return nil, reason, err
		}
		vols = append(vols, plans.Volume{Ordinal: ordinal, Template: c.Template, Claim: claim.UID, Name: pv.Name, Handle: HandleFor(p, pv)})
	}
	return vols, "", nil
}

// bound reads a claim and the volume it is bound to, in both directions. The returned reason describes what
// is wrong with the binding, or is "".
func (v mover) bound(ctx context.Context, side plans.Side, template string, ordinal int32) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, string, error) {
	name := v.Plan.ClaimName(template, ordinal)
	claim, err := v.Claim(ctx, side, name)
	if err != nil {
		return nil, nil, "", err
	}
	if claim == nil {
		return nil, nil, fmt.Sprintf("claim %s of %s does not exist, expected it to be bound", name, v.Plan.On(side)), nil
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil, fmt.Sprintf("claim %s of %s is %s, expected Bound", name, v.Plan.On(side), claim.Status.Phase), nil
	}
	if claim.DeletionTimestamp != nil {
		return nil, nil, fmt.Sprintf("claim %s of %s is being deleted by another writer; its data is lost to the set when its pod stops", name, v.Plan.On(side)), nil
	}
	pv, err := v.volumeOf(ctx, side, claim.Spec.VolumeName)
	if err != nil {
		return nil, nil, "", err
	}
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return nil, nil, fmt.Sprintf("claim %s of %s and volume %s do not name each other; repair the binding first", name, v.Plan.On(side), claim.Spec.VolumeName), nil
	}
	return claim, pv, "", nil
}
