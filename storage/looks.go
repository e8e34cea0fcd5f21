package storage

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// mover hands the volumes of a wave over, each by the mode of its claim template. Its clients read live.
type mover struct{ keeper }

// Looks returns the looks of this package for one plan. The clients must read from the API server, never from
// a cache: every gate here decides on what it reads. now is the clock of this process; without one, a grace period that
// must be over never is.
func Looks(p *plans.Plan, on map[plans.Side]client.Client, now func() time.Time) map[plans.Op]plans.Look {
	k := keeper{objects{clusters.Pair{Plan: p, On: on}}}
	v, left, shared := mover{k}, vacancy{k.objects, &ends{now: now}}, sharedVolumes{k}
	return map[plans.Op]plans.Look{
		plans.Protect: departure{k}.protect,
		plans.Vacate:  left.vacate,
		plans.Release: v.perVolume(v.release),
		plans.Reserve: left.free(v.perVolume(v.reserve)),
		plans.Claim:   left.free(v.perVolume(v.take)),
		plans.Settle:  settlement{k}.settle,
		plans.Share:   shared.share,
		plans.Unshare: shared.unshare,
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

// Volumes lists the volumes that the moved claims of an ordinal are bound to. reason is set if they cannot be
// determined.
func Volumes(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, ordinal int32) (vols []plans.Volume, reason string, err error) {
	v := objects{clusters.Pair{Plan: p, On: on}}
	for _, c := range p.Moved() {
		claim, pv, reason, err := v.bound(ctx, side, c.Template, ordinal)
		if err != nil || reason != "" {
			return nil, reason, err
		}
		vols = append(vols, plans.Volume{Ordinal: ordinal, Template: c.Template, Claim: claim.UID, Name: pv.Name, Handle: HandleFor(p, pv)})
	}
	return vols, "", nil
}
