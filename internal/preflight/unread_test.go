package preflight

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
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
	return checktest.Estate{
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
}

// No check concludes anything from what it could not read: whichever of its reads fails, it fails too.
func TestNoCheckConcludesAnythingFromWhatItHasNotRead(t *testing.T) {
	for _, one := range []bool{true, false} {
		i := everything(one).Inspected(t)
		allow(i.On) // not to create pods: a pod that is tried is judged by the API server, whatever of it could be read
		for _, c := range lookingChecks() {
			t.Run(fmt.Sprintf("%s, in one cluster: %t", c.name, one), func(t *testing.T) {
				if _, err := c.run(t.Context(), i); err != nil {
					t.Fatal(err)
				}
				checktest.Unread(t, i, c.run)
			})
		}
	}
}
