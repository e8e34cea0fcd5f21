package pdb

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Within returns the look that checks whether both budgets together leave no more than they may for a wave
// that is about to leave: ordinals that are down beside the wave count (S3). It writes nothing. Tighten has
// brought the budgets there, but gates may have taken long since, and another ordinal may have gone down. The pods may
// have been read earlier than the budgets, before the last eviction that these allowed. So the disruption controller
// must not count more pods as unhealthy than the caller does: m.Down outside the wave, and unready of the wave.
func Within(p *plans.Plan, on map[plans.Side]client.Client, unready int32) plans.Look {
	k := budgets{Pair: clusters.Pair{Plan: p, On: on}}
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		var left, unhealthy int32
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
			pods := k.Plan.Slice(side, m.Ordinals, side == m.From).Replicas
			left += allows(b.Spec, pods)
			unhealthy += max(pods-b.Status.CurrentHealthy, 0)
		}
		if unhealthy > m.Down+unready {
			return plans.Wait(reasons.BudgetNotObserved, fmt.Sprintf("the PodDisruptionBudgets count %d unhealthy pods, and the pods show %d: an ordinal has gone down or come up a moment ago; the wave starts when both agree", unhealthy, m.Down+unready)), nil
		}
		if may := max(k.Plan.MaxUnavailable-m.Ordinals.Replicas-m.Down, 0); left > may {
			return plans.Wait(reasons.BudgetTooWide, fmt.Sprintf("the budgets allow %d evictions, and no more than %d may be allowed now that %d ordinals are down; the wave starts only after they are tightened again", left, may, m.Down)), nil
		}
		return plans.Done(), nil
	}
}
