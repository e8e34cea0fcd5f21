package storage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// handover is how the volumes of one mode get from one side to the other: what differs between the modes, and nothing
// else. What S4 and S5 demand of a volume is no part of it. The looks ask that (keeper) before they ask a mode, so no
// mode can forget it.
type handover struct {
	// missing is asked, while the ordinal is up, where the receiving side has no object of the disk: it returns the reason why
	// Reserve could not create one of own, the object that leaves (S17). It is nil where both sides have one object.
	missing func(m plans.StepContext, vol plans.Volume, own *corev1.PersistentVolume) string
	// prepare looks at what Reserve has made while the ordinal is up. It is nil where Reserve can do nothing as early.
	prepare func(m plans.StepContext, pv *corev1.PersistentVolume) plans.Observation
	// release waits until no pod can mount a claim any more that is being deleted.
	release func(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error)
	// back is asked where an ordinal goes back to the side that it has left, and this side has no claim of it any more.
	back one
	// create is asked by Reserve where the receiving side has no object of the disk. held, that of the other side, is safe.
	create func(ctx context.Context, m plans.StepContext, vol plans.Volume, held *corev1.PersistentVolume) (plans.Observation, error)
	// adopt is asked by Reserve where the receiving side has an object of the disk, which is safe and of this plan: it
	// brings the object up to date, or turns it to this side.
	adopt func(ctx context.Context, m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) (plans.Observation, error)
	// settle gives up what the side that an ordinal has left for good still has of the disk of a claim.
	settle func(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error)
}

// modes has a row for each mode by which volumes of a wave move. What all ordinals share is handed over once, in steps of
// its own (sharedVolumes).
func modes() map[plans.Mode]func(keeper) handover {
	return map[plans.Mode]func(keeper) handover{plans.Rebind: byRebind, plans.Reimport: byReimport, plans.Empty: byEmpty}
}

// by returns the handover of a claim template, by the mode that the plan declares for it. A mode that has no row is not
// guessed.
func (v keeper) by(template string) (handover, error) {
	mode := v.mode(template)
	of, known := modes()[mode]
	if !known {
		return handover{}, fmt.Errorf("claim template %s: no volume moves by the mode %q; was the plan edited?", template, mode)
	}
	return of(v), nil
}

// mode returns the mode of a claim template, or "" if the plan has none for it.
func (v objects) mode(template string) plans.Mode {
	for _, c := range v.Plan.Claims {
		if c.Template == template {
			return c.Mode
		}
	}
	return ""
}

// nothing is the answer of a mode that has nothing to do.
func nothing[T any](context.Context, plans.StepContext, T) (plans.Observation, error) {
	return plans.Done(), nil
}

// Prepares reports whether a plan has volumes of which something is done before their ordinals leave (Prepare).
func Prepares(p *plans.Plan) bool { return len(preparable(p)) > 0 }

// preparable lists the claim templates of which Reserve can be done while an ordinal is up.
func preparable(p *plans.Plan) []plans.ClaimMove {
	return slices.DeleteFunc(p.Moved(), func(c plans.ClaimMove) bool {
		of, known := modes()[c.Mode]
		return !known || of(keeper{}).prepare == nil
	})
}
