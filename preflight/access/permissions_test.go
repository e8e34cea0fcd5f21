package access

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/preflight/check"
)

// The API server lists what a user may do in a namespace, and so what the user may do in the whole cluster: that is
// what it lists for a namespace that cannot exist. Only where the list is not complete, each verb is asked for.
func TestOneListAnswersForTheWholeCluster(t *testing.T) {
	rule := func(resource string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{resource}}
	}
	nodes := Right{Resource: "nodes", Verbs: []string{"get"}, ClusterWide: true}
	for name, c := range map[string]struct {
		right      Right
		verb       string
		incomplete bool
		want       bool
		asked      int
	}{
		"a right of the cluster": {right: nodes, verb: "get", want: true},
		"another verb":           {right: nodes, verb: "delete"},
		"a right of one namespace in the whole cluster": {right: Right{Resource: "persistentvolumes", ClusterWide: true}, verb: "get"},
		"a right of the namespace":                      {right: Right{Resource: "pods"}, verb: "get", want: true},
		"a right that an incomplete list has":           {right: nodes, verb: "get", incomplete: true, want: true},
		"a right that an incomplete list lacks":         {right: nodes, verb: "delete", incomplete: true, want: true, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			on := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				switch review := o.(type) {
				case *authorizationv1.SelfSubjectRulesReview:
					review.Status.ResourceRules, review.Status.Incomplete = []authorizationv1.ResourceRule{rule("nodes")}, c.incomplete
					if review.Spec.Namespace == "shop" {
						review.Status.ResourceRules = append(review.Status.ResourceRules, rule("pods"), rule("persistentvolumes"))
					}
				case *authorizationv1.SelfSubjectAccessReview:
					asked++
					review.Status.Allowed = review.Spec.ResourceAttributes.Resource == "nodes"
				}
				return nil
			}})
			i := check.Inspect(planstest.Three(), clusters.Clusters{plans.Source: on, plans.Destination: on})
			if got, err := Allowed(t.Context(), i, plans.Source, c.right, c.verb); err != nil || got != c.want || asked != c.asked {
				t.Errorf("%t (%v), asked %d times; expected %t, %d times", got, err, asked, c.want, c.asked)
			}
		})
	}
}
