package pdb

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/reasons"
)

// Within returns the look that checks whether both budgets together leave no more than they may for a wave
// that is about to leave: ordinals that are down beside the wave count (S3). It writes nothing. Tighten has
// brought the budgets there, but gates may have taken long since, and another ordinal may have gone down.
func Within(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	k := budgets{Pair: clusters.Pair{Plan: p, On: on}}
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		var left int32
		for _, side := range plans.Sides() {
			b, err := k.Budget(ctx, side)
			if err != nil {
				return plans.Observation{}, err
			}
			if why := k.foreign(m, side, b); why != "" {
				return plans.Stop(reasons.BudgetChanged, why), nil
			}
			if b == nil {
				return plans.Wait(reasons.BudgetMissing, fmt.Sprintf("there is no PodDisruptionBudget over %s", k.Plan.On(side))), nil
			}
			if b.Status.ObservedGeneration < b.Generation {
				return plans.Wait(reasons.BudgetNotObserved, fmt.Sprintf("PodDisruptionBudget %s of %s: waiting for the disruption controller to see the new spec", b.Name, k.Plan.On(side))), nil
			}
			left += allows(b.Spec, k.Plan.Slice(side, m.Ordinals, side == m.From).Replicas)
		}
		if may := max(k.Plan.MaxUnavailable-m.Ordinals.Replicas-m.Down, 0); left > may {
			return plans.Wait(reasons.BudgetTooWide, fmt.Sprintf("the budgets allow %d evictions, and no more than %d may be allowed now that %d ordinals are down; the wave starts only after they are tightened again", left, may, m.Down)), nil
		}
		return plans.Done(), nil
	}
}
