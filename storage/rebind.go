package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// rebinding hands a volume over within one cluster: both sides have the same PersistentVolume object, and one write turns
// its claimRef from the claim of one side to that of the other.
type rebinding struct{ keeper }

func byRebind(k keeper) handover {
	v := rebinding{k}
	return handover{release: v.terminating, back: nothing[plans.Volume], create: v.gone, adopt: v.turn, settle: nothing[*corev1.PersistentVolumeClaim]}
}

// gone stops where the one object that both sides have is gone.
func (v rebinding) gone(_ context.Context, _ plans.StepContext, vol plans.Volume, _ *corev1.PersistentVolume) (plans.Observation, error) {
	return plans.Stop(reasons.VolumeUnsafe, v.unsafe(nil, vol)), nil
}

// turn turns a volume that is still promised to the claim of the other side.
func (v rebinding) turn(ctx context.Context, m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) (plans.Observation, error) {
	if !v.named(pv.Spec.ClaimRef, m.From, vol) {
		return plans.Done(), nil
	}
	return v.swap(ctx, m, vol, pv)
}

// swap points the volume to the new claim once a live read shows that the old claim is gone.
func (v rebinding) swap(ctx context.Context, m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) (plans.Observation, error) {
	claim, err := v.claimOf(ctx, m.From, vol)
	if err != nil {
		return plans.Observation{}, err
	}
	if claim != nil {
		return plans.Stop(reasons.ClaimForeign, fmt.Sprintf("claim %s of %s exists again while its volume %s is handed over; delete the claim", claim.Name, v.Plan.On(m.From), pv.Name)), nil
	}
	return v.point(m, vol, pv, m.To(), ""), nil
}
