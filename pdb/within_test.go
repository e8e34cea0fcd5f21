package pdb

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

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
		{"nothing may be evicted", 1, 0, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"one may be evicted beside the wave", 2, 0, []client.Object{budget("shop", atLeast(4), ours), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"the other one went down meanwhile", 2, 1, []client.Object{budget("shop", atLeast(4), ours), budget("mall", atMost("0"), ours)}, plans.During, "the budgets allow 1 evictions, and no more than 0 may be allowed"},
		{"one too many may be evicted", 1, 0, []client.Object{budget("shop", atLeast(4), ours), budget("mall", atMost("0"), ours)}, plans.During, "the budgets allow 1 evictions"},
		{"the controller has not seen it", 1, 0, []client.Object{budget("shop", atLeast(5), ours, unseen), budget("mall", atMost("0"), ours)}, plans.During, "waiting for the disruption controller"},
		{"one side has none", 1, 0, []client.Object{budget("shop", atLeast(5), ours)}, plans.During, "there is no PodDisruptionBudget over mall/web"},
		{"the user's was deleted", 1, 0, []client.Object{budget("mall", atMost("0"), ours)}, plans.Conflict, "was deleted by another writer"},
		{"another process has gone further", 1, 0, []client.Object{budget("shop", atLeast(5), stamped("web-abc/2/1")), budget("mall", atMost("0"), ours)}, plans.Conflict, "another process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(c.world...).Build()
			p, m := plan(), moment(plans.Shrink)
			p.MaxUnavailable, m.Down = c.d, c.down
			s, err := Within(p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), m)
			if err != nil || s.Standing != c.want || !strings.Contains(s.Reason, c.reason) {
				t.Errorf("%s (%s), %v, expected %s (%s)", s.Standing, s.Reason, err, c.want, c.reason)
			}
		})
	}
}
