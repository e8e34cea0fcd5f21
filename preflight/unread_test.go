package preflight

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/preflight/checktest"
)

// everything is a set whose pods need one of most of what a check looks at.
func everything(one bool) checktest.Estate {
	object := func(o client.Object, namespace, name string) client.Object {
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	most := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	e := checktest.Estate{
		One:     one,
		Volumes: []string{"{spec: {capacity: {storage: 1Gi}, csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}, storageClassName: fast}}"},
		Claim:   "{resources: {requests: {storage: 1Gi}}, storageClassName: fast}",
		Shared:  "{spec: {capacity: {storage: 1Gi}, nfs: {server: a, path: /b}}}",
		Spec: `{serviceAccountName: web, priorityClassName: high, runtimeClassName: gvisor, imagePullSecrets: [{name: pull}],
			containers: [{name: web, image: web, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}], resources: {requests: {cpu: 1}}}],
			volumes: [{name: media, persistentVolumeClaim: {claimName: media}}, {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}]}`,
		Here: []client.Object{
			object(&appsv1.StatefulSet{}, "shop", "mail"), object(budget, "shop", "web"), object(&corev1.Pod{}, "shop", "web-0"), object(&corev1.Service{}, "shop", "web"),
			object(&corev1.ConfigMap{}, "shop", "settings"), object(&corev1.Secret{}, "shop", "password"), object(&corev1.Node{}, "", "n1"),
		},
		There: []client.Object{object(&corev1.Namespace{}, "", "mall"), object(&corev1.ResourceQuota{}, "mall", "all"), object(&corev1.Node{}, "", "n1")},
	}
	return e
}

// No check concludes anything from what it could not read: whichever of its reads fails, it fails too.
func TestNoCheckConcludesAnythingFromWhatItHasNotRead(t *testing.T) {
	for _, one := range []bool{true, false} {
		i := everything(one).Inspected(t)
		for side, c := range i.On {
			i.On[side] = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if _, review := o.(*authorizationv1.SelfSubjectRulesReview); review {
						return nil // no right is listed
					}
					return c.Create(ctx, o, opts...)
				},
			})
		}
		inspected := func(on map[plans.Side]client.Client) check.Inspection {
			failing := check.Inspect(i.Plan, on)
			failing.Now, failing.Flags = i.Now, i.Flags
			return failing
		}
		for _, c := range lookingChecks() {
			t.Run(fmt.Sprintf("%s, in one cluster: %t", c.name, one), func(t *testing.T) {
				if _, err := c.run(t.Context(), inspected(i.On)); err != nil {
					t.Fatal(err)
				}
				planstest.Unread(t, i.On, func(on map[plans.Side]client.Client) (plans.Observation, error) {
					found, err := c.run(context.WithoutCancel(t.Context()), inspected(on))
					return plans.Observation{Reason: fmt.Sprintf("%d findings", len(found))}, err
				})
			})
		}
	}
}
