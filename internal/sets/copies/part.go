package copies

import (
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move takes along of the objects that the pods name. It has no operation of its own: they are copied with
// Freeze, before the destination's set is made, and Thaw takes the marks off, or the copies away.
func Part() part.Part {
	return part.Part{Name: "copies", Rights: rights, Writes: writesOf}
}

// rights has one for each kind and set of verbs: what must exist already is only read.
func rights(p *plans.Plan, side plans.Side) []part.Right {
	var out []part.Right
	for _, d := range p.Dependencies {
		verbs := []string{"get"}
		if side == plans.Destination && d.Required == "" {
			verbs = []string{"get", "create", "patch", "delete"}
		}
		resource := strings.ToLower(d.Kind) + "s"
		k := slices.IndexFunc(out, func(r part.Right) bool { return r.Resource == resource && slices.Equal(r.Verbs, verbs) })
		if k < 0 {
			k, out = len(out), append(out, part.Right{Resource: resource, Verbs: verbs})
		}
		out[k].Names = append(out[k].Names, d.Name)
	}
	return out
}

func writesOf(p *plans.Plan, _ plans.Leg, s plans.Step) (out []part.Write) {
	verb, what := part.Create, "copied from the source, if it is absent"
	switch {
	case s.Op == plans.Thaw && s.To() == plans.Source:
		verb, what = part.Delete, "it was copied for the move, if the plan copied it"
	case s.Op == plans.Thaw:
		verb, what = part.Patch, "marks off, if the plan copied it"
	case s.Op != plans.Freeze:
		return nil
	}
	for _, d := range p.Dependencies {
		if d.Required != "" {
			continue
		}
		of := what
		switch {
		case d.Twin != nil && verb == part.Create:
			of = "the twin of a Service of clients, for the cluster alone, if there is none"
		case d.Twin != nil && verb == part.Delete:
			of = "the twin of a Service of clients, if the plan made it, and no other writer has changed it since"
		}
		out = append(out, part.On(p, plans.Destination).Write(verb, d.Kind, d.Name, of))
	}
	return out
}
