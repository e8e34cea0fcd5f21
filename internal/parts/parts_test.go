package parts

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// whole returns a plan that takes everything along.
func whole() *plans.Plan {
	p := planstest.Three()
	p.Budget = plans.Budget{Source: "web", Destination: "web", SourceExisted: true}
	p.Shared = []plans.SharedVolume{{Claim: "assets", Volume: "pv-assets"}}
	p.Gates = []plans.Gate{
		{Name: "backup", When: plans.BeforeShrink, Job: &batchv1.JobSpec{}}, {Name: "rejoin", When: plans.AfterGrow, Job: &batchv1.JobSpec{}},
	}
	return p
}

// An operation without writes looks as if it wrote nothing: so each writes to the objects of its part, and only the one that
// waits for pods does not.
func TestEveryOperationWritesToItsPart(t *testing.T) {
	p := whole()
	written := map[plans.Op]bool{}
	for _, l := range []plans.Leg{p.FirstLeg(), {Direction: plans.Finalize, First: 1}} {
		for seq := l.First; ; seq++ {
			s, more := p.Step(l, seq)
			if !more {
				break
			}
			of := All()[slices.IndexFunc(All(), func(of part.Part) bool { return of.Name == s.Op.Part() })]
			written[s.Op] = written[s.Op] || len(of.Writes(p, l, s)) > 0
		}
	}
	for _, op := range plans.Ops() {
		if written[op] == (op == plans.Vacate) {
			t.Errorf("%s: it writes to its part: %t", op, written[op])
		}
	}
}

// What a part writes, it has the right to write, on that side: the preview and the Roles are of one place.
func TestEveryWriteHasItsRight(t *testing.T) {
	resources := map[string]string{
		"StatefulSet": "statefulsets", "PodDisruptionBudget": "poddisruptionbudgets", "PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims",
		"ControllerRevision": "controllerrevisions", "Job": "jobs", "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "EndpointSlice": "endpointslices", "ServiceAccount": "serviceaccounts",
	}
	p, seen := whole(), 0
	for _, l := range []plans.Leg{p.FirstLeg(), {Direction: plans.Finalize, First: 1}, {Direction: plans.Abort, First: 1, Lowest: p.Start, End: p.End()}} {
		writes := Marks(p, l)
		for seq := l.First; ; seq++ {
			s, more := p.Step(l, seq)
			if !more {
				break
			}
			writes = append(writes, Writes(p, l, s)...)
		}
		for _, w := range writes {
			seen++
			if !slices.ContainsFunc(Rights(p, w.Side), func(r part.Right) bool {
				return r.Resource == resources[w.Kind] && slices.Contains(r.Verbs, string(w.Verb)) && (r.ClusterWide || r.In(p, w.Side) == w.Namespace)
			}) {
				t.Errorf("no right to %s %s %s on the %s", w.Verb, w.Kind, w.Object(), w.Side)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d writes", seen)
	}
}
