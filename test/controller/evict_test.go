package controller_test

import (
	"context"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// condition returns the message of a condition of the slice, or "".
func (s *side) condition(t *testing.T, kind string) string {
	t.Helper()
	c := meta.FindStatusCondition(s.slice(t).Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return c.Message
}

// An update that evicts waits for a budget that allows no disruption, and continues as
// soon as the budget allows one.
func TestAnUpdateWaitsForItsBudget(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  updateStrategy: {evict: true}")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "three pods", s.has("web-0", "web-1", "web-2"))
	all := intstr.FromInt32(3)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "peers"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	if err := s.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the budget counts three pods", func(ctx context.Context) bool {
		return s.Get(ctx, client.ObjectKeyFromObject(budget), budget) == nil && budget.Status.CurrentHealthy == 3
	})
	before := s.uids(t)
	s.taken()
	if err := s.patch(t.Context(), `{"template":{"metadata":{"annotations":{"a":"b"}}}}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the condition names the budget", func(context.Context) bool {
		return s.condition(t, "EvictionRefused") == "pod web-2 is not evicted for the update: The disruption budget peers needs 3 healthy pods and has 3 currently"
	})
	if after := s.uids(t); after["web-2"] != before["web-2"] || len(deletions(s.taken())) > 0 {
		t.Errorf("pods went against the budget: %v, %v", before, after)
	}
	if err := s.Patch(t.Context(), budget, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"minAvailable":2}}`))); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 3)
	if got := strings.Join(deletions(s.taken()), " "); got != "-2 -1 -0" {
		t.Errorf("the pods went in the order %s", got)
	}
	s.until(t, "nothing is refused any more", func(context.Context) bool { return s.condition(t, "EvictionRefused") == "" })

	// Everything else deletes, whatever the budget is.
	if err := s.patch(t.Context(), `{"replicas":1}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "scaled down", s.has("web-0"))
}
