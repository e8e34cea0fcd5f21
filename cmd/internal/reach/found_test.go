package reach

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// The mark of a plan on a set that the plan does not move leads nowhere: another tenant may have written it.
func TestAMarkLeadsOnlyToThePlanOfItsSet(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web"}}
	p.ID = "web-1f2e"
	for name, c := range map[string]struct {
		m    mark
		want bool
	}{
		"its source":        {mark{"web-1f2e", p.Source}, true},
		"its destination":   {mark{"web-1f2e", p.Destination}, true},
		"another plan":      {mark{"web-3d4c", p.Source}, false},
		"another namespace": {mark{"web-1f2e", plans.Ref{Cluster: "a", Namespace: "other", Name: "web"}}, false},
		"another set":       {mark{"web-1f2e", plans.Ref{Cluster: "a", Namespace: "shop", Name: "db"}}, false},
		"another cluster":   {mark{"web-1f2e", plans.Ref{Cluster: "c", Namespace: "shop", Name: "web"}}, false},
	} {
		if got := c.m.of(p); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
