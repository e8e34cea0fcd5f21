package plans

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// Grown returns the ordinals of a destination set that are above those of the plan: a user or an autoscaler has added
// them. The plan never writes anything of them.
func (p *Plan) Grown(set *appsv1.StatefulSet) Slice {
	if set == nil {
		return Slice{}
	}
	have := SliceOf(set)
	if have.Replicas == 0 || have.Start > p.End() || have.End() <= p.End() {
		return Slice{}
	}
	return Slice{Start: p.End(), Replicas: have.End() - p.End()}
}

// HasAll reports whether a destination set has every ordinal of the plan, and at most others above them.
func (p *Plan) HasAll(set *appsv1.StatefulSet) bool {
	have := SliceOf(set)
	return have.Start == p.Start && have.End() >= p.End()
}

// Added says which ordinals of the destination an abort has no place for, and how to go on, or returns "".
func (p *Plan) Added(set *appsv1.StatefulSet) string {
	added := p.Grown(set)
	if added.Replicas == 0 {
		return ""
	}
	have := SliceOf(set)
	return fmt.Sprintf("%s has the ordinals %s, and plan %s moves only %s: the plan has no place on the source for the ordinals %s, which %s has added, and an abort would leave them behind; no ordinal is scaled down for it. "+
		"Either keep them: once every ordinal is on the destination, finalize ends the plan with all of them (apply turns a plan that is being aborted). Or scale the set down to %d replicas, if the application can do without these members, and abort",
		p.Destination.Set(), have, p.Name, p.Ordinals(), added, Writer(set, "spec", "replicas"), p.End()-have.Start)
}
