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
		if pods.Names = append(pods.Names, p.Place(side, o)); p.Placeholder.Anchored() {
			pods.Names = append(pods.Names, plans.Anchor(p, side, o))
		}
	}
	return []part.Right{pods}
}

func writesOf(p *plans.Plan, _ plans.Leg, s plans.Step) (out []part.Write) {
	if !p.Placeholder.Used() || s.Whole() {
		return nil
	}
	for o := range s.Ordinals.All() {
		pod := p.Pod(s.To(), o)
		write := func(verb part.Verb, name, what string) {
			out = append(out, part.On(p, s.To()).Write(verb, "Pod", name, what))
		}
		switch {
		case s.Op.Tightens():
			write(part.Create, p.Place(s.To(), o), "a placeholder: it takes the place of "+pod+" before that leaves")
			if p.Placeholder.Anchored() {
				write(part.Create, plans.Anchor(p, s.To(), o), "an anchor: it draws "+pod+" to the node of its place")
			}
		case s.Op == plans.Vacate:
			write(part.Delete, p.Place(s.To(), o), "its place is for "+pod)
		case s.Op.Enters() && p.Placeholder.Anchored():
			write(part.Delete, plans.Anchor(p, s.To(), o), pod+" has its node")
		}
	}
	return out
}
