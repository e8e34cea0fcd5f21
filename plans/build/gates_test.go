package build_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestGatesThatTheSetCouldNeverAnswerAreRefused(t *testing.T) {
	exec := func(container string) plans.Gate {
		return plans.Gate{Exec: &plans.Exec{Command: []string{"x"}, Container: container}}
	}
	get := func(port string) plans.Gate {
		return plans.Gate{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString(port)}}
	}
	with := func(g plans.Gate, pod intstr.IntOrString) plans.Gate { g.Pod = &pod; return g }
	for _, c := range []struct {
		gate plans.Gate
		n    int32
		want string
	}{
		{exec("db"), 3, ""},
		{exec("sidecar"), 3, ""},
		{exec("other"), 3, `no container "other"`},
		{get("http"), 3, ""},
		{get("grpc"), 3, `no container of the set has a port named "grpc"`},
		{with(exec(""), intstr.FromInt32(4)), 3, ""},
		{with(exec(""), intstr.FromInt32(1)), 3, "pod is 1: expected an ordinal of the set, [2..4]"},
		{with(exec(""), intstr.FromString(plans.AnyOther)), 1, "the set has one pod only"},
	} {
		in := planstest.Inputs()
		in.Set = planstest.Set(2, c.n)
		in.Set.Spec.Template.Spec = corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "db", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
			InitContainers: []corev1.Container{{Name: "sidecar"}},
		}
		c.gate.Name, c.gate.When = "g", plans.AfterGrow
		in.Gates = []plans.Gate{c.gate}
		if _, err := build.Plan(in); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v, expected %q", c.gate, err, c.want)
		}
	}
}

// A gate may be evaluated on either side, during a move or an abort.
func TestGatesThatAPatchTakesTheAnswerFromAreRefused(t *testing.T) {
	in := patchedInputs("spec: {template: {spec: {containers: [{name: sidecar, $patch: delete}]}}}")
	in.Gates = []plans.Gate{{Name: "g", When: plans.AfterGrow, Exec: &plans.Exec{Command: []string{"x"}, Container: "sidecar"}}}
	want := `gate g: the pods of the set have no container "sidecar" on the destination`
	if _, err := build.Plan(in); err == nil || err.Error() != want {
		t.Errorf("got %v, expected %q", err, want)
	}
}
