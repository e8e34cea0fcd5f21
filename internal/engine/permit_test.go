package engine

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// What a wave waits for decides in which cluster it is busy.
func TestWhereAWaveIsBusy(t *testing.T) {
	wait := plans.Wait(reasons.PodNotReady, "")
	for name, c := range map[string]struct {
		op       plans.Op
		observed plans.Observation
		err      error
		want     plans.Side
	}{
		"its set is made smaller":             {plans.Shrink, plans.Write("", plans.Undo{}, nil), nil, plans.Destination},
		"its pod is to be deleted":            {plans.Vacate, wait, nil, plans.Destination},
		"its pod ends":                        {plans.Vacate, wait.Idly(), nil, ""},
		"its claim is to go":                  {plans.Release, wait, nil, plans.Destination},
		"its volume is to be bound":           {plans.Claim, wait, nil, plans.Source},
		"its pod will be created":             {plans.Grow, wait, nil, plans.Source},
		"its pod starts":                      {plans.Grow, wait.Idly(), nil, ""},
		"its application is asked":            {plans.Verify, wait, nil, ""},
		"its budgets are to be open":          {plans.Relax, wait, nil, plans.Source},
		"a cluster does not answer":           {plans.Grow, plans.Observation{}, errors.New("connection refused"), ""},
		"its budgets, which are tight, count": {plans.Tighten, wait, nil, plans.Destination},
	} {
		s := wavelimit.New(1).Of(&plans.Plan{Source: plans.Ref{Cluster: "a"}, Destination: plans.Ref{Cluster: "b"}})
		s.Acquire()
		e := &Engine{memory: memory{Process: Process{Permit: s}, journal: &journal.Journal{TightSince: &metav1.Time{}}}}
		e.retainPermit(plans.Step{Op: c.op, From: plans.Destination, Ordinals: plans.Slice{Replicas: 1}}, c.observed, c.err)
		for _, side := range plans.Sides() {
			if busy := s.Busy(side); !s.Has(side) || busy != (side == c.want) {
				t.Errorf("%s: busy on the %s: %t", name, side, busy)
			}
		}
		s.Release()
	}
}
