package engine

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/records"
)

// A process whose plan another one has taken over stops, and reports that the plan itself is not blocked.
func TestAProcessKnowsThatItsPlanWasTakenOver(t *testing.T) {
	p := planstest.Named(t, "abc")
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(c, "mall", p.Name)
	j := journal.New(p)
	j.Epoch = 2
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	e := New(p, store, clusters.Clusters{plans.Source: c, plans.Destination: c})
	e.epoch = 1
	if got, err := e.Advance(t.Context()); err != nil || got.Kind != Blocked || !got.Overtaken {
		t.Errorf("%+v, %v", got, err)
	}
}
