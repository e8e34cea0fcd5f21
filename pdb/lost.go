package pdb

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
)

// lost looks at a budget without our mark at the end. Either the budget was restored, or it belongs to
// another writer; then lost returns "". Or the mark was removed, and the numbers that the plan wrote would
// stay for good (S15); then lost returns the reason to stop. A budget with the name of those that a plan makes where the
// user has none would stay as well.
func (k budgets) lost(m plans.StepContext, side plans.Side, b *policyv1.PodDisruptionBudget) string {
	was, saved := m.Saved.Budgets[side]
	if !saved && side == plans.Destination && side == m.To() {
		was, saved = m.Saved.Budgets[plans.Source]
	}
	_, existed := k.Plan.BudgetOn(side)
	switch {
	case !existed && !k.Plan.Budget.SourceExisted:
		return fmt.Sprintf("PodDisruptionBudget %s of %s lost the stamp of this plan, which made it for the time of the move: delete it", b.Name, k.Plan.On(side))
	case !saved, Words(b.Spec) == Words(was), !k.likeOurs(b.Spec):
		return ""
	}
	return fmt.Sprintf("PodDisruptionBudget %s of %s lost the stamp of this plan, and still has %s; before the plan it had %s: set it back", b.Name, k.Plan.On(side), Words(b.Spec), Words(was))
}

// likeOurs reports whether a plan may have written these numbers: it writes integers that allow no more than
// d.
func (k budgets) likeOurs(spec policyv1.PodDisruptionBudgetSpec) bool {
	for _, v := range []*intstr.IntOrString{spec.MinAvailable, spec.MaxUnavailable} {
		if v != nil && v.Type != intstr.Int {
			return false
		}
	}
	n, err := Budget(spec, k.Plan.Count)
	return err == nil && n <= k.Plan.MaxUnavailable
}
