package placeholder

import (
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move needs for its placeholders. They have no operation of their own: a wave is prepared with them, and
// they go when its ordinals have left.
func Part() part.Part {
	return part.Part{Name: "placeholders", Rights: rights, Writes: writesOf}
}

func rights(p *plans.Plan, side plans.Side) []part.Right {
	if !p.Placeholder.Used() {
		return nil
	}
	pods := part.Right{Resource: "pods", Verbs: append(part.Watched(), "create", "delete")}
	for o := range p.Ordinals().All() {
		pods.Names = append(pods.Names, p.Place(side, o))
	}
	return []part.Right{pods}
}

func writesOf(p *plans.Plan, _ plans.Leg, s plans.Step) (out []part.Write) {
	if !p.Placeholder.Used() || s.Whole() {
		return nil
	}
	for o := range s.Ordinals.All() {
		write := func(verb part.Verb, what string) {
			out = append(out, part.On(p, s.To()).Write(verb, "Pod", p.Place(s.To(), o), what))
		}
		switch {
		case s.Op.Tightens():
			write(part.Create, "a placeholder: it takes the place of "+p.Pod(s.To(), o)+" before that leaves")
		case s.Op == plans.Vacate:
			write(part.Delete, "its place is for "+p.Pod(s.To(), o))
		}
	}
	return out
}
