package preflight

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/preflight/check"
)

// What a person reads of a plan is what it does, or the checks refuse it.
func TestAPlanThatSaysOtherThanItsPatchesDoIsRefused(t *testing.T) {
	n := int32(3)
	set := planstest.Varied()
	set.Spec.Replicas = &n
	for name, c := range map[string]struct {
		change func(*plans.Plan)
		want   string // empty for an honest plan
	}{
		"an honest plan": {func(*plans.Plan) {}, ""},
		"another patch": {func(p *plans.Plan) {
			p.Patches = []plans.Patch{{Patch: "spec: {template: {spec: {serviceAccountName: admin}}}"}}
		}, "and they change spec.template.spec.serviceAccountName = admin"},
		"one more":            {func(p *plans.Plan) { p.Patches = append(p.Patches, plans.Patch{Patch: "metadata: {labels: {z: z}}"}) }, "metadata.labels.z = z"},
		"nothing said":        {func(p *plans.Plan) { p.Changes = nil }, "it says that its patches change nothing, and they change metadata.labels"},
		"nothing done":        {func(p *plans.Plan) { p.Patches = nil }, "and they change nothing"},
		"a patch that is not": {func(p *plans.Plan) { p.Patches = []plans.Patch{{Patch: "spec: {replicas: 9}"}} }, "it changes spec.replicas"},
	} {
		p := planstest.Eventful(t)
		c.change(p)
		seen, err := plans.Fingerprints(set, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Seen = seen
		i := check.Inspect(p, nil)
		i.Now.Set = set
		found, err := PlanCurrent(t.Context(), i)
		if err != nil || (len(found) > 0) != (c.want != "") || len(found) > 0 && !strings.Contains(found[0].Saw, c.want) {
			t.Errorf("%s: the check finds %+v, %v; expected %q", name, found, err, c.want)
		}
	}
}
