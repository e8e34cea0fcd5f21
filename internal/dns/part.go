package dns

import (
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move takes along of the names: what bridges those of the other side's pods. It has no operation of its own:
// the bridge is made with Freeze, kept current meanwhile, and taken away with Thaw.
func Part() part.Part {
	return part.Part{Name: "names", Rights: rights, Writes: writesOf}
}

func rights(p *plans.Plan, side plans.Side) []part.Right {
	var out []part.Right
	if len(p.Exports()) > 0 {
		out = append(out, part.Right{Group: mcsv1alpha1.GroupName, Resource: "serviceexports", Verbs: part.Changed(), Names: []string{p.Names.Service}})
	}
	for _, namespace := range p.Directories().In(side) {
		services := part.Right{Resource: "services", Verbs: []string{"list", "watch"}, Namespace: namespace}
		of := part.Right{Group: "discovery.k8s.io", Resource: "endpointslices", Verbs: append(part.Watched(), "create", "update", "delete"), Namespace: namespace}
		for _, d := range p.Directories() {
			if d.On != side || d.Namespace != namespace {
				continue
			}
			of.Names = append(of.Names, SliceNames(p, d)...)
			switch {
			case d.Lists == "":
				services.Verbs, services.Names = append(part.Watched(), "create", "delete"), []string{p.Names.Service}
			case d.Client != "":
				services.Verbs = part.Watched()
			}
		}
		out = append(out, services, of)
	}
	return out
}

func writesOf(p *plans.Plan, _ plans.Leg, s plans.Step) (out []part.Write) {
	switch s.Op {
	case plans.Freeze:
		for _, side := range p.Exports() {
			out = append(out, part.On(p, side).Write(part.Create, "ServiceExport", p.Names.Service, "the other cluster finds the pods by it, if it is absent"))
		}
		return append(out, bridgeWrites(p, part.Create, "the names of the other side's pods; kept current meanwhile")...)
	case plans.Thaw:
		out = bridgeWrites(p, part.Delete, "the names of the other side's pods")
		for _, side := range p.Exports() {
			verb := part.Delete
			if side == s.To() && side == plans.Destination {
				verb = part.Patch
			}
			out = append(out, part.On(p, side).Write(verb, "ServiceExport", p.Names.Service, "if the plan created it"))
		}
		return out
	default:
		return nil
	}
}

// bridgeWrites returns the writes of what bridges the names.
func bridgeWrites(p *plans.Plan, verb part.Verb, what string) (out []part.Write) {
	for _, d := range p.Directories() {
		if d.Client != "" {
			what = "the other side's pods that clients find by Service " + d.Client
			if verb == part.Create {
				what += "; kept current meanwhile"
			}
		}
		if d.Lists == "" {
			out = append(out, part.Write{Verb: verb, Side: d.On, Kind: "Service", Namespace: d.Namespace, Name: p.Names.Service, What: "stands in for the governing Service of the other side"})
		}
		for _, name := range SliceNames(p, d) {
			out = append(out, part.Write{Verb: verb, Side: d.On, Kind: "EndpointSlice", Namespace: d.Namespace, Name: name, What: what + ", if they have such addresses"})
		}
	}
	return out
}
