package orchestrator

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestALeaseKeepsASecondProcessAwayWhileTheFirstLives(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	store := NewStore(c, "shop", "web")
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) func() time.Time { return func() time.Time { return noon.Add(d) } }
	alive, gone := func(string) bool { return false }, func(string) bool { return true }

	first, err := store.Acquire(t.Context(), "a/1", alive, at(0))
	if err != nil {
		t.Fatal(err)
	}
	var held ErrHeld
	if _, err := store.Acquire(t.Context(), "b/2", alive, at(14*time.Second)); !errors.As(err, &held) || held.Holder != "a/1" {
		t.Errorf("a second process got %v, expected to be told of a/1", err)
	}
	if _, err := store.Acquire(t.Context(), "b/2", gone, at(time.Second)); err != nil {
		t.Errorf("a holder that is certainly dead keeps others away: %v", err)
	}
	if err := first.Release(t.Context(), true); err != nil {
		t.Errorf("releasing a lost Lease: %v", err)
	}
	third, err := store.Acquire(t.Context(), "c/3", alive, at(17*time.Second))
	if err != nil {
		t.Fatalf("an expired Lease keeps others away: %v", err)
	}
	if err := third.Release(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	fourth, err := store.Acquire(t.Context(), "d/4", alive, at(18*time.Second))
	if err != nil {
		t.Fatalf("a released Lease keeps others away: %v", err)
	}
	if err := fourth.Release(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var lease coordinationv1.Lease
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stsmigrate-web"}, &lease); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Lease of an ended plan is still there: %v", err)
	}
}
