package engine

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
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

// A process that opens the budgets for a pause, and is overtaken meanwhile, writes nothing more. It ends as every
// overtaken process does, whatever it was about to record.
func TestAProcessThatIsOvertakenWhileItPausesWritesNothing(t *testing.T) {
	e, shrink := scripted(t, plans.Shrink, see(plans.Done()))
	changed(t, e, func(j *journal.Journal) { j.Begun, j.Paused = shrink.Seq-1, true })
	e.way.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
		changed(t, e, func(j *journal.Journal) { j.Epoch++ })
		return plans.Write("open", plans.Undo{}, func(context.Context) error {
			t.Error("an overtaken process has written a budget")
			return nil
		}), nil
	}
	if p, err := e.Advance(t.Context()); err != nil || p.Kind == Paused {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := e.Advance(t.Context()); err != nil || p.Kind != Blocked || !p.Overtaken {
		t.Errorf("%+v, %v; expected that it is overtaken", p, err)
	}
	if j := stored(t, e); j.Epoch != 2 || j.Resting {
		t.Errorf("the journal of the other process says epoch %d, resting: %t", j.Epoch, j.Resting)
	}
}
