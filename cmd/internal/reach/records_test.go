package reach

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/records"
)

// A crash between the plan and its journal leaves a plan to begin. A journal that is missing is lost where a set has the
// mark of the plan, and the plan does not begin again.
func TestAPlanWithALostJournalDoesNotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		by   string // the plan that has marked the set
		lost bool
	}{
		"no set has a mark":          {"", false},
		"the set of the plan has it": {planstest.Named(t, "abc").ID, true},
		"another plan's mark":        {"web-other", false},
	} {
		p := planstest.Named(t, "abc")
		set := planstest.Set(0, 3)
		set.Namespace, set.Name = p.Source.Namespace, p.Source.Name
		if c.by != "" {
			plans.Stamp{Plan: c.by, Epoch: 1, Seq: 2}.Put(set)
		}
		on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set).Build()
		home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
		at := &Target{Plan: p, Store: records.NewStore(home, "mall", p.Name), On: clusters.Clusters{plans.Source: on}}
		if err := at.Store.Create(t.Context(), p, journal.New(p)); err != nil {
			t.Fatal(err)
		}
		if err := home.DeleteAllOf(t.Context(), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		if err := at.Store.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		j, err := at.ToBegin(t.Context(), false)
		if lost := errors.As(err, new(records.ErrNoJournal)); lost != c.lost || !lost && (err != nil || j.Epoch != 0) {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
}
