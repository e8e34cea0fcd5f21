package sets

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// What a person reads of a plan is what it does, or the step that makes the destination's set does nothing.
func TestAStepRefusesAPlanThatSaysOtherThanItsPatchesDo(t *testing.T) {
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
		observed, err := Steps{Pair: clusters.Pair{Plan: p}}.twinned(plans.StepContext{}, set, plans.Undo{})
		if err != nil || (observed.Standing == plans.Foreign) != (c.want != "") || !strings.Contains(observed.Reason, c.want) {
			t.Errorf("%s: the step sees %s %q, %v; expected %q", name, observed.Standing, observed.Reason, err, c.want)
		}
	}
}
