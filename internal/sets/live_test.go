package sets

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The deletion of a set is not conditional on the set that keeps the ordinals. So that one is read live, after all else.
func TestTheSetThatStaysIsReadLive(t *testing.T) {
	for _, leaves := range []plans.Side{plans.Source, plans.Destination} {
		source, destination := plans.Slice{Start: 2}, plans.Slice{Start: 2, Replicas: 3}
		if leaves == plans.Destination {
			source, destination = plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5}
		}
		s := whole(plans.Retire, leaves, source, destination)
		w, kept := s.steps(), &clusters.ReadCache{}
		api := w.On
		kept.Clear()
		w.On = kept.Clients(s.plan, api)
		stays, err := w.Set(t.Context(), leaves.Other())
		if err != nil {
			t.Fatal(err)
		}
		stays.Spec.Replicas = new(int32)
		if err := api[leaves.Other()].Update(t.Context(), stays); err != nil {
			t.Fatal(err)
		}
		if got, err := (Ending{w.Pair}).Retire(t.Context(), s.moment); err != nil || got.Standing != plans.Conflict {
			t.Errorf("%s leaves: %s %q (%v), expected %s", leaves, got.Standing, got.Reason, err, plans.Conflict)
		}
	}
}
