package access

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The API server lists what a user may do in a namespace, and so what the user may do in the whole cluster: that is
// what it lists for a namespace that cannot exist. Only where the list is not complete, each verb is asked for.
func TestOneListAnswersForTheWholeCluster(t *testing.T) {
	rule := func(resource string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{resource}}
	}
	nodes := part.Right{Resource: "nodes", Verbs: []string{"get"}, ClusterWide: true}
	for name, c := range map[string]struct {
		right      part.Right
		verb       string
		incomplete bool
		want       bool
		asked      int
	}{
		"a right of the cluster": {right: nodes, verb: "get", want: true},
		"another verb":           {right: nodes, verb: "delete"},
		"a right of one namespace in the whole cluster": {right: part.Right{Resource: "persistentvolumes", ClusterWide: true}, verb: "get"},
		"a right of the namespace":                      {right: part.Right{Resource: "pods"}, verb: "get", want: true},
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

// The printed Roles name the volumes of a plan, and are enough for its way back: after a complete move the source has no
// claim, and the claims of the destination have the volumes.
func TestThePrintedRolesAreEnoughForTheWayBack(t *testing.T) {
	p := gated(2)
	p.Claims = append(p.Claims, plans.ClaimMove{Template: "cache", Mode: plans.Empty})
	volumes := []string{"pv-0", "pv-1"}
	claim := func(namespace, name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	for name, claims := range map[string]map[plans.Side][]client.Object{
		"nothing has moved": {plans.Source: {claim("shop", "data-web-0", "pv-0"), claim("shop", "data-web-1", "pv-1")}},
		"one has moved": {
			plans.Source:      {claim("shop", "data-web-0", "pv-0")},
			plans.Destination: {claim("mall", "data-web-1", "pv-1"), claim("mall", "cache-web-1", "pv-new")},
		},
		"all have moved": {plans.Destination: {claim("mall", "data-web-0", "pv-0"), claim("mall", "data-web-1", "pv-1"), claim("mall", "cache-web-1", "pv-new")}},
	} {
		on := clusters.Clusters{}
		for _, side := range plans.Sides() {
			var granted []authorizationv1.ResourceRule
			for _, o := range Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, volumes) {
				for _, r := range rulesOf(o) {
					granted = append(granted, authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
				}
			}
			on[side] = interceptor.NewClient(fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(claims[side]...).Build(), interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				if review, is := o.(*authorizationv1.SelfSubjectRulesReview); is {
					review.Status.ResourceRules = granted
				}
				return nil
			}})
		}
		i := check.Inspect(p, on)
		i.Midway, i.Orchestrated = true, planstest.Noon
		if found, err := Permissions(t.Context(), i); err != nil || len(found) > 0 {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}
