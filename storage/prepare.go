package storage

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Prepare returns the look that makes the volumes and claims of a wave in the other cluster while the wave is still
// up: each volume object first, with Retain and for the one claim, then the claim (S4, S5). It writes nothing unless
// everything that the wave will require is as it must be (Departing). No pod may mount these claims before the wave
// has left: Departing looks at that again, and Vacate and Grow at what is attached (S1).
func Prepare(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	v := mover{clusters.Pair{Plan: p, On: on}}
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		ctx = clusters.Unmade(ctx) // volumes and claims alike are created, and nothing else is concluded
		var parts []plans.Observation
		for o := range m.Ordinals.All() {
			for _, c := range p.Moved() {
				made, err := v.Claim(ctx, m.To(), p.ClaimName(c.Template, o))
				if err != nil {
					return plans.Observation{}, err
				}
				if made != nil && m.Stamp.Mine(made) && pending(made) { // all else is looked at again when it is bound
					wait := v.unbound(made, m.To())
					wait.Again = max(bindingGrace-time.Since(made.CreationTimestamp.Time), time.Millisecond)
					parts = append(parts, wait)
					continue
				}
				vol, s, err := v.departing(ctx, m, c.Template, o)
				switch {
				case err != nil || s.Standing == plans.Conflict:
					return s, err
				case s.Standing != plans.After: // Shrink waits for it too, or writes what the user has vouched for
					return plans.Wait(s.ID, s.Reason), nil
				}
				if s, err = v.reserve(ctx, m, vol); err == nil && s.Standing == plans.After {
					s, err = v.take(ctx, m, vol)
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
