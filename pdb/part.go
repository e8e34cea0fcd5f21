package pdb

import (
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move takes along of the budgets.
func Part() part.Part {
	return part.Part{Name: plans.Budgets, Rights: rights, Marks: marks, Writes: writesOf}
}

func rights(p *plans.Plan, side plans.Side) []part.Right {
	name, _ := p.BudgetOn(side)
	return []part.Right{{Group: "policy", Resource: "poddisruptionbudgets", Verbs: part.Changed(), Names: []string{name}}}
}

func marks(p *plans.Plan, l plans.Leg, side plans.Side) []part.Write {
	if _, existed := p.BudgetOn(side); !existed && l.Opens(p) {
		return nil
	}
	return []part.Write{write(p, part.Patch, side, part.ToMark)}
}

func writesOf(p *plans.Plan, l plans.Leg, s plans.Step) []part.Write {
	switch s.Op {
	case plans.Tighten:
		return tightenings(p, l, s)
	case plans.Relax:
		return relaxations(p, l, s)
	case plans.Thaw:
		return thaws(p, s)
	default:
		return nil
	}
}

func tightenings(p *plans.Plan, l plans.Leg, s plans.Step) (out []part.Write) {
	spec, allowed := During(p, s.Ordinals), Allowed(p, s.Ordinals)
	first := l.Direction == plans.Move && s.Ordinals.End() == p.End()
	for _, side := range plans.Sides() {
		verb, what := part.Patch, "while the wave is away"
		if _, existed := p.BudgetOn(side); first && !existed {
			verb = part.Create
		}
		if s.From == plans.Source {
			what = Words(spec[side]) + " " + what
			if !first && allowed[side] == 0 {
				what += "; left out if the wave before has just arrived"
			}
		}
		out = append(out, write(p, verb, side, what))
	}
	return out
}

func relaxations(p *plans.Plan, l plans.Leg, s plans.Step) (out []part.Write) {
	what := "the whole budget divided by the new numbers of ordinals, if that changes it" + part.AtOnce(p, l, s)
	for _, side := range plans.Sides() {
		out = append(out, write(p, part.Patch, side, what))
	}
	return out
}

func thaws(p *plans.Plan, s plans.Step) (out []part.Write) {
	for _, side := range plans.Sides() {
		_, existed := p.BudgetOn(side)
		switch {
		case existed:
			out = append(out, write(p, part.Patch, side, "its own numbers, marks off"))
		case side == plans.Destination && s.To() == side && p.Budget.SourceExisted:
			out = append(out, write(p, part.Patch, side, "a copy of the source's, marks off"))
		default:
			out = append(out, write(p, part.Delete, side, "it was created for the move"))
		}
	}
	return out
}

func write(p *plans.Plan, verb part.Verb, side plans.Side, what string) part.Write {
	name, _ := p.BudgetOn(side)
	return part.On(p, side).Write(verb, "PodDisruptionBudget", name, what)
}
