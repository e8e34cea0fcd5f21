package trials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// rule denies a kind of write in a namespace, or in the whole cluster, as a policy does.
type rule struct {
	operation, kind, namespace string
	floor                      int32 // of replicas: an update to fewer is denied, and no other
}

func (r rule) denies(operation string, o client.Object) bool {
	if set, is := o.(*appsv1.StatefulSet); is && r.floor > 0 && *set.Spec.Replicas >= r.floor {
		return false
	}
	return operation == r.operation && clusters.KindOf(o) == r.kind && o.GetNamespace() == r.namespace
}

func (r rule) no(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(r.kind) + "s"}, name, errors.New("ValidatingAdmissionPolicy 'closed' with binding 'closed' denied request: not here"))
}

// allowed answers that the user may do everything, if that is the question.
func allowed(o client.Object) bool {
	switch review := o.(type) {
	case *authorizationv1.SelfSubjectRulesReview:
		review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	case *authorizationv1.SelfSubjectAccessReview:
		review.Status.Allowed = true
	default:
		return false
	}
	return true
}

// ruled gives the clusters of an inspection a rule, and reports every write that is no dry run.
func ruled(t *testing.T, i check.Inspection, r rule) {
	t.Helper()
	for side, on := range i.On {
		i.On[side] = interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if allowed(o) {
					return nil
				}
				if asked := (&client.CreateOptions{}).ApplyOptions(opts); len(asked.DryRun) == 0 {
					t.Errorf("%T %s is created", o, o.GetName())
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if r.denies("CREATE", o) {
					return r.no(o.GetName())
				}
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if asked := (&client.PatchOptions{}).ApplyOptions(opts); len(asked.DryRun) == 0 {
					t.Errorf("%T %s is changed", o, o.GetName())
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if r.denies("UPDATE", o) {
					return r.no(o.GetName())
				}
				return c.Patch(ctx, o, patch, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				asked := (&client.DeleteOptions{}).ApplyOptions(opts)
				if len(asked.DryRun) == 0 || asked.Preconditions == nil || asked.Preconditions.UID == nil || asked.Preconditions.ResourceVersion == nil {
					t.Errorf("%T %s is deleted, or any of its name", o, o.GetName())
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if r.denies("DELETE", o) {
					return r.no(o.GetName())
				}
				return c.Delete(ctx, o, opts...)
			},
		})
	}
}

// atRest is a set of three ordinals before its move, with a budget, a Secret and a governing Service.
func atRest(t *testing.T, one bool) check.Inspection {
	t.Helper()
	replicas := int32(3)
	labels := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	set.Spec.Replicas, set.Spec.ServiceName = &replicas, "web"
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	service.Spec.ClusterIP = corev1.ClusterIPNone
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "b"}}
	b.Spec.MaxUnavailable, b.Spec.Selector = new(intstr.FromInt32(1)), set.Spec.Selector
	volume := "spec: {csi: {driver: d, volumeHandle: h}, capacity: {storage: 1Gi}}"
	e := checktest.Estate{One: one, Volumes: []string{volume, volume, volume}}
	for _, namespace := range []string{"shop", "mall"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{corev1.LabelMetadataName: namespace}}}
		if e.Here = append(e.Here, ns); !one {
			e.There = append(e.There, ns.DeepCopy())
		}
	}
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
		e.Here = append(e.Here, pod)
	}
	e.Here = append(e.Here, set, service, b)
	i := e.Inspected(t)
	i.Plan.Names = plans.Names{Mode: plans.Bridge, Service: "web"}
	i.Plan.Dependencies = []plans.Dependency{{Kind: "Service", Name: "web"}}
	i.Plan.Budget = plans.Budget{Source: "web", Destination: "web", SourceExisted: true}
	var err error
	if i.Now.Set, err = i.Set(t.Context(), plans.Source); err != nil || i.Now.Set == nil {
		t.Fatal(err)
	}
	return i
}

func all(ctx context.Context, i check.Inspection) (out []check.Finding, err error) {
	for _, run := range []func(context.Context, check.Inspection) ([]check.Finding, error){WritesAccepted, SizesAccepted, ReturnsAccepted, EndsAccepted} {
		found, err := run(ctx, i)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(found, func(f check.Finding) bool { return f.Level == check.Warn })...)
	}
	return out, nil
}

// One rule at a time denies one kind of write. What the checks pod-accepted, claims-accepted, volumes-accepted and admission
// try is not asked here.
func TestEachRuleIsFoundBeforeTheMove(t *testing.T) {
	for _, one := range []bool{true, false} {
		rules := map[rule]string{
			{}: "",
			{operation: "DELETE", kind: "PersistentVolumeClaim", namespace: "shop"}: "refuses to delete it",
			{operation: "UPDATE", kind: "PersistentVolumeClaim", namespace: "shop"}: "refuses to change it",
			{operation: "CREATE", kind: "PersistentVolumeClaim", namespace: "shop"}: "refuses to create it",
			{operation: "CREATE", kind: "Pod", namespace: "shop"}:                   "when an abort brings it back",
			{operation: "UPDATE", kind: "PersistentVolume"}:                         "refuses to change it",
			{operation: "UPDATE", kind: "PodDisruptionBudget", namespace: "shop"}:   "refuses to change it",
			{operation: "CREATE", kind: "PodDisruptionBudget", namespace: "mall"}:   "refuses to create it",
			{operation: "UPDATE", kind: "StatefulSet", namespace: "shop"}:           "refuses to change it",
			{operation: "UPDATE", kind: "StatefulSet", namespace: "shop", floor: 2}: "1 replicas: ",
			{operation: "DELETE", kind: "StatefulSet", namespace: "shop"}:           "refuses to delete it",
			{operation: "DELETE", kind: "Pod", namespace: "shop"}:                   "the controller of the set deletes the pod",
			{operation: "CREATE", kind: "EndpointSlice", namespace: "shop"}:         "refuses to create it",
			{operation: "CREATE", kind: "EndpointSlice", namespace: "mall"}:         "refuses to create it",
			{operation: "CREATE", kind: "Service", namespace: "mall"}:               "refuses to create it",
		}
		if !one {
			rules[rule{operation: "DELETE", kind: "PersistentVolume"}] = "refuses to delete it"
		}
		for r, want := range rules {
			t.Run(fmt.Sprintf("one cluster %t %v", one, r), func(t *testing.T) {
				i := atRest(t, one)
				ruled(t, i, r)
				found, err := all(t.Context(), i)
				if err != nil {
					t.Fatal(err)
				}
				if said := check.Words(found); (want == "") != (len(found) == 0) || !strings.Contains(said, want) || want != "" && !strings.Contains(said, "not here") {
					t.Errorf("%d findings, expected %q: %s", len(found), want, said)
				}
			})
		}
	}
}

// A pod that somebody else keeps stays after it has stopped, and its ordinal is nowhere until he lets it go.
func TestPodsThatSomebodyKeepsAreTold(t *testing.T) {
	i := atRest(t, true)
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: "shop", Name: "web-1"}
	if err := i.On[plans.Source].Get(t.Context(), key, pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = []string{"example.com/deregister"}
	if err := i.On[plans.Source].Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	found, err := SizesAccepted(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "WARN...Pod shop/web-1...example.com/deregister")
}
