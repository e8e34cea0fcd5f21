package orchestrator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/plans/planstest"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Who keeps the names of a plan for weeks writes its Lease seldom. A wish of a person ends that, and then nobody waits for
// the Lease.
func TestNamesAreKeptUnderALongLease(t *testing.T) {
	for orchestrated, want := range map[bool]int32{true: keepSeconds, false: leaseSeconds} {
		synctest.Test(t, func(t *testing.T) {
			clock := time.Now //nolint:forbidigo // that of the bubble
			p := planstest.Named(t, "abc")
			on := Clusters{}
			for _, n := range Parties(p) {
				on[n.Side] = fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(n.Agree(p, clock().Add(time.Hour), nil)).Build()
			}
			home := fake.NewClientBuilder().WithScheme(Scheme()).Build()
			store, stop, over := NewStore(home, "stsmigrate", p.Name), make(chan struct{}), make(chan error)
			c := Carriage{Plan: p, Store: store, On: on, Orchestrated: orchestrated, Holder: "me", Dead: func(string) bool { return false }, Now: clock, Stop: stop}
			go func() { over <- c.Keep(t.Context(), true) }()
			<-time.After(time.Minute) // of the bubble
			var have coordinationv1.Lease
			if err := home.Get(t.Context(), client.ObjectKey{Namespace: "stsmigrate", Name: LeaseName(p.Name)}, &have); err != nil || *have.Spec.LeaseDurationSeconds != want {
				t.Errorf("orchestrated %t: %+v, %v; expected %d seconds", orchestrated, have.Spec, err, want)
			}
			close(stop)
			if err := <-over; err != nil {
				t.Error(err)
			}
			began := clock()
			if _, err := store.Acquire(t.Context(), "another", c.Dead, c.Now); err != nil && !apierrors.IsNotFound(err) || clock().After(began) {
				t.Errorf("orchestrated %t: another process waits %s: %v", orchestrated, clock().Sub(began), err)
			}
		})
	}
}

// A plan is checked under its Lease, so that one process does it, and before anything of it is begun.
func TestAPlanIsCheckedUnderItsLease(t *testing.T) {
	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	alive := func(string) bool { return false }
	broken := errors.New("connection refused")
	for name, c := range map[string]struct {
		reason string
		err    error
	}{
		"a check fails":  {reason: "web-1 is not ready"},
		"nobody answers": {err: broken},
	} {
		p := planstest.Named(t, "abc")
		home := fake.NewClientBuilder().WithScheme(Scheme()).Build()
		store := NewStore(home, "stsmigrate", p.Name)
		if err := store.Create(t.Context(), p, plans.NewJournal(p)); err != nil {
			t.Fatal(err)
		}
		asked := 0
		carriage := Carriage{
			Plan: p, Store: store, Holder: "me", Dead: alive, Now: clock,
			Ready: func(ctx context.Context) (string, error) {
				asked++
				if _, err := store.Acquire(ctx, "another", alive, clock); !errors.As(err, new(ErrHeld)) {
					t.Errorf("%s: another process can have it meanwhile: %v", name, err)
				}
				return c.reason, c.err
			},
		}
		got, _, err := carriage.Carry(t.Context(), plans.Wish{Course: plans.Move})
		if !errors.Is(err, c.err) || (got.Kind == Held) != (c.err == nil) || got.Reason != c.reason {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		j, _, err := store.Journal(t.Context(), p)
		if err != nil || j.Held != c.reason || j.Epoch != 0 || asked != 1 {
			t.Errorf("%s: asked %d times; %+v, %v", name, asked, j, err)
		}
		if holder, err := store.Holder(t.Context(), clock); holder != "" || err != nil {
			t.Errorf("%s: the Lease is kept by %q: %v", name, holder, err)
		}
	}
}
