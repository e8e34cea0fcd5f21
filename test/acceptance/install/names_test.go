package install_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Under the policies a user requests the removal of a plan's kept names, and the orchestrator
// removes them. The user may not write the plan's journal, and the orchestrator may.
func TestAPersonAsksForKeptNamesToBeTakenAway(t *testing.T) {
	owner := declarable(t)
	p := finalized(t, as(t, account))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: dns.SliceNames(p, p.Directories()[0])[0], Labels: map[string]string{dns.PlanLabel: p.ID, discoveryv1.LabelManagedBy: dns.ManagedBy}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	if err := owner.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	remove := func(want string) {
		t.Helper()
		out, err := stsmigrate(t, "names", p.Name, "--remove", "--yes", "-n", "stsmigrate", "--as", "eve", "--as-group", "system:masters")
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	remove("the orchestrator in namespace stsmigrate takes its names away")
	store := records.NewStore(as(t, account), "stsmigrate", p.Name)
	journal := func() *journal.Journal {
		t.Helper()
		j, _, err := store.Journal(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	d, err := records.ReadDeclared(t.Context(), owner, "stsmigrate", p.Name)
	if err != nil || d == nil || d.Wrong != nil {
		t.Fatalf("%+v, %v", d, err)
	}
	asked := requests.Read(p, journal(), d.Spec)
	if !asked.RemoveNames || !journal().KeepNames {
		t.Fatalf("%+v, %+v", asked, journal())
	}
	on := clusters.Clusters{plans.Source: as(t, account), plans.Destination: as(t, account)}
	err = runner.Runner{Plan: p, Store: store, On: on, Holder: "test", Dead: func(string) bool { return true }, Now: time.Now}.RemoveNames(t.Context(), asked.Command, func(string) {})
	if j := journal(); err != nil || j.KeepNames || j.Observed.Request != d.Spec.Request.ID {
		t.Errorf("%v; %+v", err, j)
	}
	if err := owner.Get(t.Context(), client.ObjectKeyFromObject(slice), slice); !apierrors.IsNotFound(err) {
		t.Errorf("the slice is there still: %v", err)
	}
	remove("has kept no names") // a second request
}

// finalized creates a plan of this cluster that an orchestrator has finalized and whose names are
// kept.
func finalized(t *testing.T, by client.Client) *plans.Plan {
	t.Helper()
	uid, err := clusters.ClusterUID(t.Context(), by)
	if err != nil {
		t.Fatal(err)
	}
	replicas := int32(3)
	p, err := build.Plan(build.Inputs{
		Name: "bridged", ID: "bridged-abc", MaxUnavailable: 1, Names: plans.Names{Mode: plans.Bridge, Service: "web"},
		Source:      plans.Ref{Cluster: uid, Context: "north", Namespace: "default", Name: "web"},
		Destination: plans.Ref{Cluster: uid, Context: "north", Namespace: "mall", Name: "web"},
		Set:         &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
	})
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(p)
	j.StartLeg(p, plans.Finalize)
	j.Detached, j.Epoch, j.Outcome, j.KeepNames = true, 3, plans.Finalized, true
	j.Observed.Direction = plans.Finalize
	if err := records.NewStore(by, "stsmigrate", p.Name).Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := records.NewStore(by, "stsmigrate", p.Name).Forget(context.Background(), p, "test", func(string) bool { return true }, time.Now); err != nil {
			t.Error(err)
		}
	})
	return p
}
