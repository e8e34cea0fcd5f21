package reach

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The mark of a plan on a set that the plan does not move leads nowhere: another tenant may have written it.
func TestAMarkLeadsOnlyToThePlanOfItsSet(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web"}}
	p.ID = "web-1f2e"
	for name, c := range map[string]struct {
		m    mark
		want bool
	}{
		"its source":        {mark{"web-1f2e", p.Source}, true},
		"its destination":   {mark{"web-1f2e", p.Destination}, true},
		"another plan":      {mark{"web-3d4c", p.Source}, false},
		"another namespace": {mark{"web-1f2e", plans.Ref{Cluster: "a", Namespace: "other", Name: "web"}}, false},
		"another set":       {mark{"web-1f2e", plans.Ref{Cluster: "a", Namespace: "shop", Name: "db"}}, false},
		"another cluster":   {mark{"web-1f2e", plans.Ref{Cluster: "c", Namespace: "shop", Name: "web"}}, false},
	} {
		if got := c.m.of(p); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Which of several clusters was looked at is what a user at night has got wrong.
func TestAMissingPlanSaysWhereItWasLookedFor(t *testing.T) {
	for name, c := range map[string]struct{ context, want string }{
		"with a context":   {"west", "there is no plan web in namespace mall of west; plans are kept on the side of their destination, or of their orchestrator: name that with --context"},
		"inside a cluster": {"", "there is no plan web in namespace mall; plans are kept on the side of their destination"},
	} {
		e := &End{Client: fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), Namespace: "mall", Context: c.context}
		if _, err := e.plan(t.Context(), "web"); !errors.As(err, new(records.ErrNoPlan)) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

// A user who has asked an orchestrator for a move learns what it says, in place of where plans are kept.
func TestAMissingPlanSaysWhatTheOrchestratorSaysOfIt(t *testing.T) {
	for said, want := range map[string]string{
		"the plan cannot be made: no set": "no plan is stored for StatefulSetMigration web in namespace mall of hub: the plan cannot be made: no set; to follow it: kubectl describe statefulsetmigration web -n mall",
		"":                                "the orchestrator has said nothing about it yet",
	} {
		o := records.NewDeclared("mall", "web")
		o.Object["status"] = map[string]any{"message": said}
		e := &End{Client: fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(o).Build(), Namespace: "mall", Context: "hub"}
		if _, err := e.plan(t.Context(), "web"); !errors.As(err, new(records.ErrNoPlan)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
