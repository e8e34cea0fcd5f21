package live

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The record of a plan that has ended may go while the plan is watched. Nobody is sent to a backup for that. A journal
// alone that is gone is another matter.
func TestARecordThatGoesWhileItIsWatchedIsNotLost(t *testing.T) {
	p := planstest.Named(t, "abc")
	for _, stored := range []bool{false, true} {
		home := fake.NewClientBuilder().Build()
		s := Source{Target: &reach.Target{Plan: p, Store: records.NewStore(home, "mall", p.Name)}, Now: planstest.Noon}
		if stored {
			if err := s.Store.CreatePlan(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Status(t.Context())
		var none records.ErrNoPlan
		if errors.As(err, &none) == stored || err == nil || strings.Contains(err.Error(), "backup") != stored {
			t.Errorf("the plan is stored: %t: %v", stored, err)
		}
	}
}
