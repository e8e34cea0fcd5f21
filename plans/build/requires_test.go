package build_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// A release that does not know expressions must not read a plan whose gates have one: they would pass too early.
func TestAPlanWithAnExpressionRequiresIt(t *testing.T) {
	replicas := int32(2)
	gate := plans.Gate{Name: "up", When: plans.AfterGrow, Exec: &plans.Exec{Command: []string{"state"}}}
	made := func(expression string) *plans.Plan {
		gate.Expression = expression
		p, err := build.Plan(build.Inputs{
			Name: "web", ID: "abc", MaxUnavailable: 1, Gates: []plans.Gate{gate},
			Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "shop", Name: "web"},
			Set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := made(""); p.Requires != nil {
		t.Errorf("a plan without expressions requires %q", p.Requires)
	}
	p := made(`body.state == "running"`)
	raw, err := plans.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	read, err := plans.DecodePlan(raw)
	if err != nil || !slices.Equal(read.Requires, []string{plans.GateExpressions}) || read.Gates[0].Expression != gate.Expression {
		t.Errorf("%v, %+v", err, read)
	}
	if _, err := plans.DecodePlan([]byte(strings.Replace(string(raw), plans.GateExpressions, "more", 1))); err == nil || !strings.Contains(err.Error(), `requires support for ["more"]`) {
		t.Errorf("a plan of a newer release: %v", err)
	}
}

// A release that does not know placeholders must not read a plan that takes places: an ordinal would leave without its place.
// A plan that takes none can be read by every release, and one that was stored before means what it says.
func TestAPlanWithPlaceholdersRequiresThem(t *testing.T) {
	replicas := int32(2)
	made := func(proof plans.Proof) []byte {
		p, err := build.Plan(build.Inputs{
			Name: "web", ID: "abc", MaxUnavailable: 1, Placeholder: plans.Placeholder{Proof: proof},
			Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "shop", Name: "web"},
			Set: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		raw, err := plans.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for _, proof := range []plans.Proof{plans.Scheduled, plans.Warm} {
		raw := string(made(proof))
		read, err := plans.DecodePlan([]byte(raw))
		if err != nil || !slices.Equal(read.Requires, []string{plans.Placeholders}) || read.Placeholder.Proof != proof {
			t.Errorf("%s: %v, %+v", proof, err, read)
		}
		if !strings.Contains(raw, "requires:\n- placeholders\n") {
			t.Errorf("%s: an older release would not refuse it:\n%s", proof, raw)
		}
	}
	for _, proof := range []plans.Proof{"", plans.NoProof} {
		read, err := plans.DecodePlan(made(proof))
		if err != nil || read.Requires != nil || read.Placeholder.Used() {
			t.Errorf("%q: %v, %+v", proof, err, read)
		}
	}
}
