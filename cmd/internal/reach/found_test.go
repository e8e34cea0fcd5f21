package reach

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		"its source":        {mark{id: "web-1f2e", set: p.Source}, true},
		"its destination":   {mark{id: "web-1f2e", set: p.Destination}, true},
		"another plan":      {mark{id: "web-3d4c", set: p.Source}, false},
		"another namespace": {mark{id: "web-1f2e", set: plans.Ref{Cluster: "a", Namespace: "other", Name: "web"}}, false},
		"another set":       {mark{id: "web-1f2e", set: plans.Ref{Cluster: "a", Namespace: "shop", Name: "db"}}, false},
		"another cluster":   {mark{id: "web-1f2e", set: plans.Ref{Cluster: "c", Namespace: "shop", Name: "web"}}, false},
	} {
		if got := c.m.of(p); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A plan may know its clusters by namespaces. The mark leads to it where that namespace has the UID, and nowhere else.
func TestAMarkIsKnownAsThePlanKnowsIt(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Cluster: "uid-of-mall", KnownBy: "mall", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "uid-of-mall", KnownBy: "mall", Namespace: "mall", Name: "web"}}
	p.ID = "web-1f2e"
	for uid, want := range map[string]bool{"uid-of-mall": true, "uid-of-another-mall": false, "": false} {
		b := fake.NewClientBuilder().WithScheme(clusters.Scheme())
		if uid != "" {
			b = b.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", UID: types.UID(uid)}})
		}
		at := &End{Client: b.Build()}
		for _, side := range plans.Sides() {
			m := mark{id: p.ID, set: plans.Ref{Cluster: "uid-of-kube-system", Namespace: p.On(side).Namespace, Name: "web"}, at: at}
			if got := m.known(t.Context(), p).of(p); got != want {
				t.Errorf("%s, namespace with %q: %t", side, uid, got)
			}
		}
	}
	old := &plans.Plan{ID: p.ID, Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}}
	if !(mark{id: p.ID, set: old.Source}).known(t.Context(), old).of(old) {
		t.Error("a plan that knows its clusters by kube-system")
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
