package recovery

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
)

// tell describes what was found, one line for each set, each budget and each volume.
func (m *marks) tell() []string {
	var out []string
	for _, side := range plans.Sides() {
		name := m.plan.On(side).Set()
		set := m.sets[side]
		if set == nil {
			out = append(out, fmt.Sprintf("%s: %s does not exist", side, name))
			continue
		}
		way := set.Annotations[plans.DirectionAnnotation]
		if way != "" {
			way = ", on its " + way
		}
		out = append(out, fmt.Sprintf("%s: %s has the ordinals %s (start %d), UID %s, %s%s", side, name, plans.SliceOf(set), plans.SliceOf(set).Start, set.UID, stampOf(set), way))
	}
	for _, side := range plans.Sides() {
		name, _ := m.plan.BudgetOn(side)
		b := m.budgets[side]
		if b == nil {
			out = append(out, fmt.Sprintf("%s: PodDisruptionBudget %s does not exist", side, name))
			continue
		}
		out = append(out, fmt.Sprintf("%s: PodDisruptionBudget %s asks for %s, %s", side, name, pdb.Words(b.Spec), stampOf(b)))
	}
	for _, t := range m.traces {
		line := fmt.Sprintf("claim %s:", m.plan.ClaimName(plans.Source, t.Template, t.Ordinal))
		for _, side := range plans.Sides() {
			if c := t.Claims[side]; c != nil {
				line += fmt.Sprintf(" on the %s %s,", side, c.Status.Phase)
			}
		}
		if len(t.Claims) == 0 {
			line += " on neither side,"
		}
		switch pv := t.Volumes[plans.Source]; {
		case pv == nil && t.Volumes[plans.Destination] == nil:
			line += " no volume of it is known"
		case t.Protected(m.plan):
			line += " its volume is protected"
		default:
			line += " its volume is not protected"
		}
		out = append(out, line)
	}
	return out
}

func stampOf(o client.Object) string {
	s, ok := plans.Stamped(o)
	if !ok {
		return "without a mark"
	}
	return fmt.Sprintf("marked by step %d of epoch %d", s.Seq, s.Epoch)
}
