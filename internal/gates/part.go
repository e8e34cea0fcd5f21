package gates

import (
	"slices"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move takes along of the gates.
func Part() part.Part {
	return part.Part{Name: plans.Gating, Rights: rights, Writes: writesOf}
}

// rights lists what the gates of a side need, for the move and for an abort: an aborted plan asks the same gates in the other
// direction.
func rights(p *plans.Plan, side plans.Side) []part.Right {
	var out []part.Right
	for _, r := range []struct {
		needed func(plans.Gate) bool
		right  part.Right
		names  func(g plans.Gate, ordinal int32) string
	}{
		{func(g plans.Gate) bool { return g.Exec != nil }, part.Right{Resource: "pods/exec", Verbs: []string{"create"}}, func(_ plans.Gate, o int32) string { return p.Pod(side, o) }},
		{func(g plans.Gate) bool { return g.HTTPGet != nil }, part.Right{Resource: "pods/proxy", Verbs: []string{"get"}}, func(g plans.Gate, o int32) string { return Proxied(p.Pod(side, o), g.HTTPGet) }},
		{plans.Gate.IsJob, part.Right{Group: "batch", Resource: "jobs", Verbs: part.Changed()}, func(g plans.Gate, o int32) string { return p.JobName(g, g.StepOfGate(side), o) }},
	} {
		if !p.HasGate(r.needed) {
			continue
		}
		for _, g := range p.Gates {
			for o := range p.Ordinals().All() {
				if r.needed(g) {
					r.right.Names = append(r.right.Names, r.names(g, o))
				}
			}
		}
		slices.Sort(r.right.Names)
		if r.right.Names = slices.Compact(r.right.Names); slices.Contains(r.right.Names, "") {
			r.right.Names = nil // the port has a name, and only the pod knows its number
		}
		out = append(out, r.right)
	}
	return out
}

// writes lists those of the gates that are Jobs.
func writesOf(p *plans.Plan, _ plans.Leg, s plans.Step) (out []part.Write) {
	for _, g := range p.GatesAt(s.Op) {
		if !g.IsJob() {
			continue
		}
		for o := range s.Ordinals.All() {
			name := p.JobName(g, s, o)
			out = append(out, part.On(p, s.GateSide()).Write(part.Create, "Job", name, "suspended, for gate "+g.Name),
				part.On(p, s.GateSide()).Write(part.Patch, "Job", name, "start it"), part.On(p, s.GateSide()).Write(part.Delete, "Job", name, "when it is complete"))
		}
	}
	return out
}
