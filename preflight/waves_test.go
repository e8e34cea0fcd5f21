package preflight

import (
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// What is about the whole plan is not asked again before each of many small waves, and is after half a minute. What it
// found is asked again at once.
func TestStandingChecksHoldForAWhile(t *testing.T) {
	i := estateOfTwoSets().Inspected(t)
	allowAll(i.On)
	now, j := time.Unix(1000, 0), journal.New(i.Plan)
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return now }}
	found := func() bool {
		t.Helper()
		all, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if f.Check == "owner" {
				return true
			}
		}
		return false
	}
	own := func(owners ...metav1.OwnerReference) {
		t.Helper()
		for _, namespace := range []string{"shop", "mall"} {
			var s appsv1.StatefulSet
			if err := i.On[plans.Source].Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &s); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			} else if err != nil {
				continue
			}
			s.OwnerReferences = owners
			if err := i.On[plans.Source].Update(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	operator := metav1.OwnerReference{APIVersion: "db.example.com/v1", Kind: "Cluster", Name: "web", UID: "o", Controller: new(true)}
	own(operator)
	for range 2 {
		if !found() {
			t.Error("an owner is not found, or not found again")
		}
	}
	if own(); found() {
		t.Error("an owner is found that is no more")
	}
	own(operator)
	if now = now.Add(standingValidity); found() {
		t.Error("it was asked again within half a minute")
	}
	if now = now.Add(time.Second); !found() {
		t.Error("it was not asked again after half a minute")
	}
	own()
	found()
	own(operator)
	if now = now.Add(-time.Hour); !found() {
		t.Error("it was not asked again by a clock that was set back")
	}
}

// The checks before the first write have asked everything a moment ago. They were about a Move.
func TestWhatPassedBeforeTheStartIsNotAskedAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		passed    time.Time
		direction plans.Direction
		asks      bool
	}{
		"never":        {direction: plans.Move, asks: true},
		"just now":     {passed: now.Add(-standingValidity), direction: plans.Move},
		"long ago":     {passed: now.Add(-standingValidity - 1), direction: plans.Move, asks: true},
		"for an abort": {passed: now, direction: plans.Abort, asks: true},
	} {
		w := Waves{Now: func() time.Time { return now }}
		if !c.passed.IsZero() {
			w.Passed(c.passed)
		}
		if asks := slices.ContainsFunc(w.due(c.direction, now), func(r row) bool { return r.wave == standing }); asks != c.asks {
			t.Errorf("%s: asked again %t, expected %t", name, asks, c.asks)
		}
	}
}

// The engine starts a check anew without awaiting one that takes too long.
func TestAWaveMayBeCheckedWhileAnEarlierCheckRuns(t *testing.T) {
	i := estateOfTwoSets().Inspected(t)
	allowAll(i.On)
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
	var checks sync.WaitGroup
	for range 4 {
		checks.Go(func() {
			if _, err := w.Check(t.Context(), journal.New(i.Plan), plans.Slice{Replicas: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	checks.Wait()
}
