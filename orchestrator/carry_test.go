package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

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
		p := planNamed(t, "abc")
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
