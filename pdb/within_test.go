package pdb

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

func healthy(n int32) change {
	return func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = n }
}

// An ordinal of the wave that is down already is no surprise.
func TestTheWavesOwnPodMayBeDown(t *testing.T) {
	ours := stamped("web-abc/1/9")
	api := fake.NewClientBuilder().WithObjects(budget("shop", atLeast(5), ours, healthy(4)), budget("mall", atMost("0"), ours)).Build()
	s, err := Within(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, 1)(t.Context(), moment(plans.Shrink))
	if err != nil || s.Standing != plans.After {
		t.Errorf("%s (%s), %v, expected %s", s.Standing, s.Reason, err, plans.After)
	}
}

// Ordinal 4 of five is about to leave. Tighten has run, perhaps long ago.
func TestAWaveLeavesOnlyWhileTheBudgetsFit(t *testing.T) {
	ours := stamped("web-abc/1/9")
	for _, c := range []struct {
		name    string
		d, down int32
		world   []client.Object
		want    plans.Standing
		reason  string
	}{
		{"nothing may be evicted", 1, 0, []client.Object{budget("shop", atLeast(5), ours, healthy(5)), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"one may be evicted beside the wave", 2, 0, []client.Object{budget("shop", atLeast(4), ours, healthy(5)), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"the other one went down meanwhile", 2, 1, []client.Object{budget("shop", atLeast(4), ours, healthy(5)), budget("mall", atMost("0"), ours)}, plans.During, "the budgets allow 1 evictions, and no more than 0 may be allowed"},
		{"one too many may be evicted", 1, 0, []client.Object{budget("shop", atLeast(4), ours, healthy(5)), budget("mall", atMost("0"), ours)}, plans.During, "the budgets allow 1 evictions"},
		{"the controller has not seen it", 1, 0, []client.Object{budget("shop", atLeast(5), ours, unseen, healthy(5)), budget("mall", atMost("0"), ours)}, plans.During, "waiting for the disruption controller"},
		{"one side has none", 1, 0, []client.Object{budget("shop", atLeast(5), ours, healthy(5))}, plans.During, "there is no PodDisruptionBudget over mall/web"},
		{"one more is down than the pods have shown", 1, 0, []client.Object{budget("shop", atLeast(5), ours, healthy(4)), budget("mall", atMost("0"), ours)}, plans.During, "the PodDisruptionBudgets count 1 unhealthy pods, and the pods show 0"},
		{"as many are down as the pods have shown", 2, 1, []client.Object{budget("shop", atLeast(5), ours, healthy(4)), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"the user's was deleted", 1, 0, []client.Object{budget("mall", atMost("0"), ours)}, plans.Conflict, "was deleted by another writer"},
		{"another process has gone further", 1, 0, []client.Object{budget("shop", atLeast(5), stamped("web-abc/2/1"), healthy(5)), budget("mall", atMost("0"), ours)}, plans.Conflict, "another process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(c.world...).Build()
			p, m := plan(), moment(plans.Shrink)
			p.MaxUnavailable, m.Down = c.d, c.down
			s, err := Within(p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, 0)(t.Context(), m)
			if err != nil || s.Standing != c.want || !strings.Contains(s.Reason, c.reason) {
				t.Errorf("%s (%s), %v, expected %s (%s)", s.Standing, s.Reason, err, c.want, c.reason)
			}
		})
	}
}
