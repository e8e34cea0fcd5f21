package simulation

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A process that keeps names may sleep for longer than its Lease lasts. It then detects that another process
// has the plan, or that the plan has ended, and ends too.
func TestNamesAreKeptForNoLongerThanTheLease(t *testing.T) {
	alive, dead := func(string) bool { return false }, func(string) bool { return true }
	for _, ends := range []bool{true, false} {
		w := newWorld(threeOrdinals(plans.Rebind))
		walk(t, w, plans.Move, nil)
		synctest.Test(t, func(t *testing.T) {
			store := records.NewStore(w.on[plans.Destination], green, planName)
			stop := make(chan struct{})
			c := runner.Runner{
				Plan: w.plan, Store: store, Holder: "laptop/1", Dead: alive, Now: time.Now, Stop: stop,
				Complain: func(err error) { t.Log(err) },
			}
			over := make(chan error, 1)
			go func() { over <- c.Keep(t.Context(), false) }()
			synctest.Wait()
			other, err := store.Acquire(t.Context(), "other/2", dead, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if ends {
				walk(t, w, plans.Finalize, nil)
				if err := other.Release(t.Context(), true); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case err := <-over:
				if ends && err != nil || !ends && !errors.As(err, new(records.ErrLeaseLost)) {
					t.Errorf("the plan has ended: %t; %v", ends, err)
				}
			case <-time.After(time.Minute):
				t.Errorf("the plan has ended: %t; it still keeps the names", ends)
				close(stop)
				t.Log(<-over)
			}
		})
	}
}
