package main

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan that is stored for commands stays theirs: it is kept elsewhere than an orchestrator looks, and what it
// finds there may be under way.
func TestAPlanOfCommandsIsNotDetached(t *testing.T) {
	for name, change := range map[string]func(*plans.Journal){
		"stored":    func(*plans.Journal) {},
		"under way": func(j *plans.Journal) { j.Epoch, j.Begun = 1, 3 },
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "mall", change)
		for _, what := range []string{"web", inFile(t, p)} {
			got := command(t, "apply", what, "--detach", "--yes", "-n", "mall", "--kubeconfig", config)
			if got.code != exitError || !strings.Contains(got.errOut, "where it is carried out by commands, and not by an orchestrator") || !strings.Contains(got.errOut, "`stsmigrate apply web -n mall --context home --kubeconfig "+config+"`") {
				t.Errorf("%s, apply %s: %+v", name, what, got)
			}
		}
		if _, err := orchestrator.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
			t.Errorf("%s: it is stored twice", name)
		}
	}
}

// orchestratorOf is the Lease of one that reads plans of this version.
func orchestratorOf(reads string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "stsmigrate", Name: "stsmigrate.orchestrator.p1", Labels: map[string]string{orchestrator.HeartbeatLabel: ""},
		Annotations: map[string]string{"stsmigrate.dev/version": "v0.1.0", "stsmigrate.dev/reads": reads},
	}}
}

// A plan is handed over to somebody, or not at all.
func TestAPlanIsHandedOverToWhoLives(t *testing.T) {
	replicas := int32(3)
	p, err := plans.Build(plans.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1,
		Source:      plans.Ref{Cluster: "uid-of-the-cluster", Context: "home", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "uid-of-the-cluster", Context: "home", Namespace: "mall", Name: "web"},
		Set:         &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const next = "asking the source what you may do" // the checks
	for name, c := range map[string]struct {
		lives *coordinationv1.Lease
		want  []string
	}{
		"nobody lives":     {nil, []string{"there is no orchestrator in namespace stsmigrate", "nothing has been written", "--home-namespace"}},
		"one lives":        {orchestratorOf(plans.APIVersion), []string{next}},
		"one lives, older": {orchestratorOf("stsmigrate.dev/v1alpha0"), []string{"(v0.1.0) reads plans of version \"stsmigrate.dev/v1alpha0\"", "the orchestrator is the older of the two"}},
	} {
		on, config := serve(t, []string{"home"})
		if on.lives = c.lives; c.lives != nil {
			if err := on.Create(t.Context(), c.lives.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		got := command(t, "apply", inFile(t, p), "--detach", "--yes", "--kubeconfig", config)
		if got.code != exitError || slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(got.errOut, w) }) || strings.Contains(got.errOut, next) != (c.want[0] == next) {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
		if _, err := orchestrator.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
			t.Errorf("%s: the plan is stored", name)
		}
	}
}

// A plan that waits for an orchestrator says so when there is none.
func TestTheStatusSaysThatNoOrchestratorLives(t *testing.T) {
	for name, c := range map[string]struct {
		lives *coordinationv1.Lease
		want  string
	}{
		"none":  {nil, "orchestrator: there is no orchestrator in namespace stsmigrate\nnext:    start an orchestrator there"},
		"one":   {orchestratorOf(plans.APIVersion), "next:    the orchestrator goes on with it"},
		"other": {orchestratorOf("stsmigrate.dev/v2"), "this stsmigrate is the older of the two"},
	} {
		on, config := serve(t, []string{"home"})
		if on.lives = c.lives; c.lives != nil {
			if err := on.Create(t.Context(), c.lives.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		keep(t, on, "stsmigrate", func(j *plans.Journal) { j.Detached, j.Epoch = true, 1 })
		if got := command(t, "status", "web", "-n", "stsmigrate", "--kubeconfig", config); got.code != exitDone || !strings.Contains(got.out, c.want) || !strings.Contains(got.out, "  Waiting  ") {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
}
