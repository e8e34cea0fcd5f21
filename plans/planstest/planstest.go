// Package planstest provides plans, sets and clients for the tests of several packages.
package planstest

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Noon returns the time of tests that have no clock of their own.
func Noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// Named returns a plan of three ordinals with this ID, from namespace shop to namespace mall of one cluster.
func Named(tb testing.TB, id string) *plans.Plan {
	tb.Helper()
	replicas := int32(3)
	p, err := build.Plan(build.Inputs{
		Name: "web", ID: id, MaxUnavailable: 1,
		Source:      plans.Ref{Cluster: "one", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "one", Namespace: "mall", Name: "web"},
		Set:         &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Eventful returns a plan that uses every feature.
func Eventful(tb testing.TB) *plans.Plan {
	tb.Helper()
	replicas, set := int32(3), Varied()
	set.Spec.Replicas = &replicas
	p, err := build.Plan(build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 2, Window: 2, Set: set,
		Source:      plans.Ref{Cluster: "one", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "two", Context: "west", Namespace: "mall", Name: "web", Kind: plans.SliceKind},
		Names:       plans.Names{Mode: plans.Bridge, Service: "web"},
		Storage:     plans.Storage{Classes: map[string]string{"a": "b"}, Secrets: map[string]string{"a/b": "c/d"}, Topology: []plans.Topology{{Key: "zone", As: "area"}}},
		Shared:      []plans.SharedVolume{{Claim: "logo", Volume: "pv-logo", Handle: `{"rbd":{"monitors":["m"],"image":"i"}}`}},
		Empty:       []string{"log"},
		Patches: []plans.Patch{
			{Path: "a.yaml", Patch: "spec: {template: {spec: {containers: [{name: db, image: 'db:2'}]}}}"},
			{Patch: `[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/c"}]`},
		},
		Gates: []plans.Gate{
			{Name: "leader", When: plans.BeforeShrink, Exec: &plans.Exec{Command: []string{"sh", "-c", "$(POD)"}}},
			{Name: "ready", When: plans.AfterGrow, HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}, Pod: &intstr.IntOrString{Type: intstr.String, StrVal: plans.AnyOther}},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Varied returns the set of Eventful.
func Varied() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "db", Image: "db:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, {ObjectMeta: metav1.ObjectMeta{Name: "log"}}},
		},
	}
}

// Parsed returns an object from its YAML.
func Parsed[T any](tb testing.TB, text string) T {
	tb.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return out
}

// WithFutures returns a client of an API server that is newer than this program.
func WithFutures(on client.Client) client.Client {
	return interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if u, ok := o.(*unstructured.Unstructured); ok && err == nil {
				err = errors.Join(unstructured.SetNestedField(u.Object, "set", "spec", "futureSet"), unstructured.SetNestedField(u.Object, "pod", "spec", "template", "spec", "futurePod"))
			}
			return err
		},
	})
}

// Misstatement changes the plan of Eventful. Want is the finding that the change must cause; empty
// for an honest plan.
type Misstatement struct {
	Change func(*plans.Plan)
	Want   string
}

// Misstated returns plans that do not describe correctly what their patches do, and an honest one.
func Misstated() map[string]Misstatement {
	return map[string]Misstatement{
		"an honest plan": {func(*plans.Plan) {}, ""},
		"another patch": {func(p *plans.Plan) {
			p.Patches = []plans.Patch{{Patch: "spec: {template: {spec: {serviceAccountName: admin}}}"}}
		}, "but they change spec.template.spec.serviceAccountName: (none) -> admin"},
		"one more":            {func(p *plans.Plan) { p.Patches = append(p.Patches, plans.Patch{Patch: "metadata: {labels: {z: z}}"}) }, "metadata.labels.z: (none) -> z"},
		"nothing said":        {func(p *plans.Plan) { p.Changes = nil }, "it records that its patches change nothing, but they change metadata.labels"},
		"nothing done":        {func(p *plans.Plan) { p.Patches = nil }, "but they change nothing"},
		"a patch that is not": {func(p *plans.Plan) { p.Patches = []plans.Patch{{Patch: "spec: {replicas: 9}"}} }, "it changes spec.replicas"},
	}
}
