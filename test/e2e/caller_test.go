//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// caller is a client of an application, in a pod.
type caller struct {
	place
	pod string
}

// judge ends the calls of a client and adds to a row what they say about each ordinal. It returns
// the calls.
func (c caller) judge(t *testing.T, s fixture, report *witness.Report, r *row) []history.Call {
	t.Helper()
	var state history.State
	if err := c.ask(t.Context(), "POST", c.pod, "stop", nil, &state); err != nil {
		t.Fatal(err)
	}
	var calls []history.Call
	if err := c.ask(t.Context(), "GET", c.pod, "history", nil, &calls); err != nil {
		t.Fatal(err)
	}
	for i := range s.replicas {
		o := s.replicas - 1 - i
		span := report.Spans[o]
		gap := history.Gap(calls, span.SourceDeleting, span.DestinationReady)
		r.note("%s-%d: %.1f s without the member, longest %.2f s without an answer to the client meanwhile", s.set, o, report.Down[o].Seconds(), gap.Seconds())
		r.gap = max(r.gap, gap)
	}
	if len(state.Lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(state.Lost), state.Acknowledged, state.Lost[:min(5, len(state.Lost))])
	}
	if state.Acknowledged < 100 {
		t.Errorf("only %d writes were acknowledged: %s", state.Acknowledged, state.Last)
	}
	r.acknowledged, r.lost = state.Acknowledged, len(state.Lost)
	return calls
}

// gone deletes the client, which finds nobody after the end of the move.
func (c caller) gone(t *testing.T) {
	t.Helper()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = c.namespace, c.pod
	if err := c.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}
}
