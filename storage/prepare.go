package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Prepare returns the look that makes the volume objects of a wave in the other cluster while the wave is still up, with
// Retain and for the one claim (S4, S5). It writes nothing unless everything that the wave will require is as it must be
// (Departing). The claim that leaves is saved BEFORE, as it is now: it may have changed since it was protected, and the
// new claim is made of what is saved.
//
// The claims are made when the wave has left (take): a pod that waits for one would mount the disk of an ordinal that is
// up. Nor can a claim of another writer get the disk, since the volume is sealed: its claimRef has the UID of the claim
// that has the disk now, which no other claim has (S20). It is prepared when the binder has seen that.
func Prepare(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	pair := clusters.Pair{Plan: p, On: on}
	v := departure{keeper{objects{pair.MayBeMissing()}}} // volumes are created, and nothing else is concluded
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		var parts []plans.Observation
		for o := range m.Ordinals.All() {
			for _, c := range preparable(p) {
				vol, s, err := v.departing(ctx, m, c.Template, o)
				switch {
				case err != nil || s.Standing == plans.Conflict:
					return s, err
				case s.Standing != plans.After: // Shrink waits for it too, or writes it
					return plans.Wait(s.ID, s.Reason), nil
				}
				for _, look := range []one{v.current, mover(v).reserve, v.prepared} {
					if s, err = look(ctx, m, vol); err != nil || s.Standing != plans.After {
						break
					}
				}
				if err != nil {
					return plans.Observation{}, err
				}
				parts = append(parts, s)
			}
		}
		return plans.Together(parts), nil
	}
}

// current saves the claim that leaves on its volume again, if it has changed since it was saved.
func (v departure) current(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	claim, pv, why, err := v.bound(ctx, m.From, vol.Template, vol.Ordinal)
	if err != nil || why != "" {
		return plans.Stop(reasons.BindingBroken, why), err
	}
	return v.retain(ctx, m, claim, pv)
}

// prepared looks at the volume that a wave which is still up has been given on its new side.
func (v departure) prepared(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	pv, err := v.volumeOf(ctx, m.To(), vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := v.unsafe(pv, vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	by, err := v.by(vol.Template)
	if err != nil {
		return plans.Observation{}, err
	}
	return by.prepare(m, pv), nil
}

// Admitted tries to create the claims of a wave that is prepared, on the side that will receive it, and returns why the
// API server would refuse one. Nothing is stored (dry run).
func Admitted(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext) error {
	v := departure{keeper{objects{clusters.Pair{Plan: p, On: on}}}}
	for o := range m.Ordinals.All() {
		for _, c := range preparable(p) {
			claim, err := v.Claim(ctx, m.From, p.ClaimName(m.From, c.Template, o))
			if err != nil || claim == nil {
				return err
			}
			pv, err := v.volumeOf(ctx, m.To(), claim.Spec.VolumeName)
			if err != nil || pv == nil {
				return err
			}
			create, err := v.creation(m, pv)
			if err != nil {
				return err
			}
			if err := create(ctx, client.DryRunAll); err != nil {
				return fmt.Errorf("%s refuses claim %s, so no pod is scaled down: %w", p.On(m.To()), claim.Name, err)
			}
		}
	}
	return nil
}

// Reach returns from which nodes of the side that receives a wave the volumes of an ordinal can be reached, which are made
// there while it is still up: one selector for each volume that says so.
func Reach(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext, ordinal int32) (out []corev1.NodeSelector, err error) {
	v := keeper{objects{clusters.Pair{Plan: p, On: on}.MayBeMissing()}}
	for _, c := range p.Moved() {
		claim, err := v.Claim(ctx, m.From, p.ClaimName(m.From, c.Template, ordinal))
		if err != nil {
			return nil, err
		}
		if claim == nil {
			continue // the looks report it
		}
		pv, err := v.volumeOf(ctx, m.To(), claim.Spec.VolumeName)
		if err != nil {
			return nil, err
		}
		if pv != nil && pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
			out = append(out, *pv.Spec.NodeAffinity.Required)
		}
	}
	return out, nil
}
