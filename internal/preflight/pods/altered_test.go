package pods

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// altering answers dry runs with objects that a policy has changed, to a user who may do everything.
func altering(on client.Client, change func(client.Object)) client.Client {
	watching, _ := on.(client.WithWatch)
	return interceptor.NewClient(watching, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		switch review := o.(type) {
		case *authorizationv1.SelfSubjectRulesReview:
			review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
			return nil
		case *authorizationv1.SelfSubjectAccessReview:
			review.Status.Allowed = true
			return nil
		}
		if len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) == 0 {
			return c.Create(ctx, o, opts...)
		}
		change(o)
		return nil
	}})
}

// The answer to a dry run is the object as it would be. One that admission has changed may not bind, or not be the set's.
func TestWhatAdmissionChangesDoesNotKeepAnOrdinalFromArriving(t *testing.T) {
	claim := func(change func(*corev1.PersistentVolumeClaimSpec)) func(client.Object) {
		return func(o client.Object) {
			if c, is := o.(*corev1.PersistentVolumeClaim); is {
				change(&c.Spec)
			}
		}
	}
	pod := func(change func(*corev1.Pod)) func(client.Object) {
		return func(o client.Object) {
			if p, is := o.(*corev1.Pod); is {
				change(p)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(client.Object)
		of     func(context.Context, check.Inspection) ([]check.Finding, error)
		want   []string
	}{
		"nothing of a claim": {func(client.Object) {}, ClaimsAccepted, nil},
		"a label of a claim": {func(o client.Object) { o.SetLabels(map[string]string{"team": "a"}) }, ClaimsAccepted, nil},
		"its class":          {claim(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("platform") }), ClaimsAccepted, []string{"FAIL...claim mall/data-web-0...spec.storageClassName from \"\" to \"platform\"...binds to the volume"}},
		"its volume":         {claim(func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeName = "" }), ClaimsAccepted, []string{"FAIL...spec.volumeName from \"pv-0\" to \"\""}},
		"its mode":           {claim(func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }), ClaimsAccepted, []string{"FAIL...spec.volumeMode from \"Filesystem\" to \"Block\""}},
		"how it is mounted": {claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteMany"}
		}), ClaimsAccepted, []string{"FAIL...spec.accessModes"}},
		"what it selects": {claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}), ClaimsAccepted, []string{"FAIL...spec.selector"}},
		"more room": {claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("9Gi")}
		}), ClaimsAccepted, []string{"FAIL...requests.storage from \"1Gi\" to \"9Gi\""}},
		"less room": {claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		}), ClaimsAccepted, nil},
		"nothing of a pod":    {func(client.Object) {}, PodAccepted, nil},
		"another label":       {pod(func(p *corev1.Pod) { p.Labels["mesh"] = "on" }), PodAccepted, nil},
		"that of the set":     {pod(func(p *corev1.Pod) { p.Labels["app"] = "mall-app" }), PodAccepted, []string{"FAIL...a pod of the set on the destination...app=mall-app...the selector of the set (app=web) does not match"}},
		"the volume of a pod": {pod(func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }), PodAccepted, []string{"FAIL...its volume data, so that it is not claim data-web-0"}},
	} {
		for _, way := range []struct {
			kind string
			one  bool
		}{{"", true}, {"", false}, {plans.SliceKind, true}} {
			t.Run(name, func(t *testing.T) {
				app := map[string]string{"app": "web"}
				i := checktest.Estate{One: way.one, Kind: way.kind, Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}, Claim: "resources: {requests: {storage: 1Gi}}", Labels: app, Spec: "containers: [{name: web}]"}.Inspected(t)
				i.Now.Set.Spec.Selector = &metav1.LabelSelector{MatchLabels: app}
				i.On[plans.Destination] = altering(i.On[plans.Destination], c.change)
				found, err := c.of(t.Context(), i)
				if err != nil {
					t.Fatal(err)
				}
				checktest.ExpectFindings(t, found, c.want...)
			})
		}
	}
}
