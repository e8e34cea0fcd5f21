package sets

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move takes along of the sets, with what their pods name.
func Part() part.Part {
	return part.Part{Name: plans.Sets, Rights: rights, Marks: marks, Writes: writesOf}
}

func rights(p *plans.Plan, side plans.Side) []part.Right {
	of := clusters.ResourceOf(p.On(side))
	return append([]part.Right{
		{Resource: "pods", Verbs: part.Watched()},
		{Group: of.Group, Resource: of.Resource, Verbs: part.Changed(), Names: []string{p.On(side).Name}},
		{Group: "apps", Resource: "controllerrevisions", Verbs: []string{"list", "patch"}}, // a set's annotations are copied onto them
		{Resource: "nodes", Verbs: part.Watched(), ClusterWide: true},                      // nodes prove that a pod has ended, and show drains
	}, slices.Concat(namespaces(p, side), copies.Part().Rights(p, side))...)
}

// namespaces returns the rights to read namespaces: one identifies the cluster, and the others must exist. A Role in a
// namespace gives the right to read it, so that only kube-system asks for more.
func namespaces(p *plans.Plan, side plans.Side) []part.Right {
	get := []string{"get"}
	var out []part.Right
	for _, name := range namespacesOf(p, side) {
		out = append(out, part.Right{Resource: "namespaces", Verbs: get, Namespace: name, Names: []string{name}, ClusterWide: name == metav1.NamespaceSystem})
	}
	return out
}

func namespacesOf(p *plans.Plan, side plans.Side) []string {
	out := []string{p.On(side).Namespace}
	if by := p.On(side).Identity(); by != out[0] {
		out = append([]string{by}, out...)
	}
	for _, d := range p.Directories() {
		if d.On == side && !slices.Contains(out, d.Namespace) {
			out = append(out, d.Namespace)
		}
	}
	return out
}

func marks(p *plans.Plan, l plans.Leg, side plans.Side) []part.Write {
	if side == plans.Destination && l.Opens(p) && !p.Existed() {
		return nil
	}
	return []part.Write{write(p, part.Patch, side, part.ToMark)}
}

func writesOf(p *plans.Plan, l plans.Leg, s plans.Step) []part.Write {
	switch {
	case s.Op == plans.Freeze:
		return freezes(p, l, s)
	case s.Op.Tightens():
		return pins(p, s)
	case s.Op == plans.Shrink:
		return []part.Write{write(p, part.Patch, s.From, "scale down to "+p.Slice(s.From, s.Ordinals, false).String())}
	case s.Op == plans.Grow:
		return []part.Write{write(p, part.Patch, s.To(), "scale up to "+p.Slice(s.To(), s.Ordinals, true).String())}
	case s.Op.Loosens():
		return unpins(p, l, s)
	case s.Op == plans.Retire && (s.From == plans.Source || !p.Existed()): // a set that was there before is Thaw's
		return []part.Write{write(p, part.Delete, s.From, "it has no ordinals and no pods")}
	case s.Op == plans.Thaw:
		return append(copies.Part().Writes(p, l, s), thaws(p, s)...)
	}
	return nil
}

func freezes(p *plans.Plan, l plans.Leg, s plans.Step) []part.Write {
	what := "mark it, keep its claims when it shrinks (retention policy Retain)"
	out := append([]part.Write{write(p, part.Patch, plans.Source, what)}, copies.Part().Writes(p, l, s)...)
	if p.Existed() {
		return append(out, write(p, part.Patch, plans.Destination, what))
	}
	return append(out, write(p, part.Create, plans.Destination, fmt.Sprintf("with no ordinals (start %d)", p.End())))
}

func pins(p *plans.Plan, s plans.Step) (out []part.Write) {
	for _, side := range []plans.Side{s.From, s.To()} {
		if p.Slice(side, s.Ordinals, false).Replicas > 0 {
			out = append(out, write(p, part.Patch, side, "pin its rolling updates while the wave is away: a partition above all ordinals, the old one is saved on it; left out if it is pinned, or has the strategy OnDelete"))
		}
	}
	return out
}

func unpins(p *plans.Plan, l plans.Leg, s plans.Step) (out []part.Write) {
	if s.Ordinals == p.Ordinals() {
		return nil
	}
	for _, side := range []plans.Side{s.From, s.To()} {
		out = append(out, write(p, part.Patch, side, "its own partition, if it is pinned"+part.AtOnce(p, l, s)))
	}
	return out
}

func thaws(p *plans.Plan, s plans.Step) (out []part.Write) {
	if s.From == plans.Destination && p.Existed() {
		out = append(out, write(p, part.Patch, s.From, "its own range and retention policy, marks off"))
	}
	out = append(out, write(p, part.Patch, s.To(), "its own retention policy, marks off"))
	if s.To() == plans.Destination && !p.Existed() { // a set that was there before had no marks when its revisions were made
		out = append(out, part.On(p, s.To()).Write(part.Patch, "ControllerRevision", p.On(s.To()).Name+"-*", "without what the controller copied of the marks"))
	}
	return out
}

func write(p *plans.Plan, verb part.Verb, side plans.Side, what string) part.Write {
	return part.On(p, side).Write(verb, p.On(side).SetKind(), p.On(side).Name, what)
}
