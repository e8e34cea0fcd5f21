package pods

import (
	"context"
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// What the placeholders of a plan take is not taken: each goes when its ordinal comes (S28). Those of another plan count.
func TestThePlaceholdersOfThePlanAreInNobodysWay(t *testing.T) {
	const port = `{containers: [{name: web, ports: [{containerPort: 7001, hostPort: 7001}], resources: {requests: {cpu: "1"}}}]}`
	for name, c := range map[string]struct {
		plan string
		want []string
	}{
		"its own":              {plan: "own"},
		"those of another one": {plan: "other", want: []string{"FAIL ..."}},
	} {
		place, _ := runs(t, "mall", "web-0-place", "n0", "", port).(*corev1.Pod)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "few"}}
		quota.Spec.Hard = planstest.Parsed[corev1.ResourceList](t, `{pods: "1", requests.cpu: "1"}`)
		quota.Status.Used = quota.Spec.Hard
		e := checktest.Estate{Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}, Spec: port, There: append(hosts("a"), place, quota)}
		i := e.Inspected(t)
		i.Plan.Placeholder.Proof = plans.Warm
		place.Labels = map[string]string{plans.PlaceholderLabel: i.Plan.Name}
		plans.Stamp{Plan: map[string]string{"own": i.Plan.ID, "other": "another"}[c.plan]}.Put(place)
		there := &corev1.Pod{}
		if err := i.On[plans.Destination].Get(t.Context(), client.ObjectKeyFromObject(place), there); err != nil {
			t.Fatal(err)
		}
		there.Labels, there.Annotations = place.Labels, place.Annotations
		if err := i.On[plans.Destination].Update(t.Context(), there); err != nil {
			t.Fatal(err)
		}
		i.On[plans.Destination] = interceptor.NewClient(i.On[plans.Destination].(client.WithWatch), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				switch o := o.(type) {
				case *authorizationv1.SelfSubjectAccessReview:
					o.Status.Allowed = true
					return nil
				case *authorizationv1.SelfSubjectRulesReview:
					o.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
					return nil
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("exceeded quota: few"))
			},
		})
		room, err := NodesFit(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		left, err := Quota(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		tried, err := PodAccepted(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			checktest.ExpectFindings(t, tried, c.want...)
			checktest.ExpectFindings(t, room, c.want...)
			var want []string
			for range 2 * len(c.want) {
				want = append(want, "FAIL ...ResourceQuota mall/few...0 of 1 are left")
			}
			checktest.ExpectFindings(t, left, want...)
		})
	}
}
