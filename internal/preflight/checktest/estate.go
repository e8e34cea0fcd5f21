// Package checktest provides two clusters with a set and its volumes, for the tests of checks.
package checktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// Estate is a set with one volume for each of its ordinals, and the other objects of the clusters.
type Estate struct {
	// Volumes are the sources of the volumes, as PersistentVolumes in short YAML.
	Volumes []string
	// Claim is the spec of the claims, without the name of their volume.
	Claim string
	// Template is the spec of the claim template, and Empty reports whether the ordinals start without its data.
	Template string
	Empty    bool
	// Shared is the volume of the claim that the pod template names, if it has one, in short YAML.
	Shared  string
	Spec    string // of the pods, in short YAML
	Labels  map[string]string
	Patch   string
	Storage plans.Storage
	One     bool   // whether both sides are in one cluster
	Kind    string // of the set on the destination, where it is no StatefulSet
	Here    []client.Object
	There   []client.Object
	// Forbids is a type that no client may read, such as "*v1.ServiceList" or "*v1.StorageClass". With a slash at its end, it
	// is a list of all namespaces.
	Forbids string
}

// Inspected makes the plan and the input of the checks.
func (e Estate) Inspected(t *testing.T) check.Inspection {
	t.Helper()
	replicas := int32(max(len(e.Volumes), 1)) //nolint:gosec // as many as the test lists
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	if e.Spec != "" {
		set.Spec.Template.Spec = planstest.Parsed[corev1.PodSpec](t, e.Spec)
	}
	set.Spec.Template.Labels = e.Labels
	if len(e.Volumes) > 0 {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		if e.Template != "" {
			set.Spec.VolumeClaimTemplates[0].Spec = planstest.Parsed[corev1.PersistentVolumeClaimSpec](t, e.Template)
		}
	}
	in := build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Set: set, Storage: e.Storage,
		Source:      plans.Ref{Cluster: "one", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "two", Context: "west", Namespace: "mall", Name: "web"},
	}
	in.Destination.Kind = e.Kind
	if e.One {
		in.Destination.Cluster, in.Destination.Context = "one", "east"
	}
	if e.Empty {
		in.Empty, in.Gates = []string{"data"}, []plans.Gate{{Name: "caught-up", When: plans.AfterGrow, Timeout: metav1.Duration{Duration: time.Minute}, Exec: &plans.Exec{Command: []string{"true"}}}}
	}
	if e.Patch != "" {
		in.Patches = []plans.Patch{{Patch: e.Patch}}
	}
	here := slices.Clone(e.Here)
	for n, text := range e.Volumes {
		here = append(here, e.Bound(t, fmt.Sprintf("data-web-%d", n), fmt.Sprintf("pv-%d", n), text)...)
	}
	if e.Shared != "" {
		here = append(here, e.Bound(t, "media", "pv-media", e.Shared)...)
	}
	on := clusters.Clusters{plans.Source: e.cluster(here), plans.Destination: e.cluster(e.There)}
	if e.One {
		on[plans.Destination] = on[plans.Source]
	}
	var err error
	if in.Shared, err = check.Shared(t.Context(), clusters.Pair{Plan: &plans.Plan{Source: in.Source, Destination: in.Destination}, On: on}, set); err != nil {
		t.Fatal(err)
	}
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	i := check.Inspect(p, on)
	i.Now, i.Flags = in, map[plans.Side]string{plans.Source: " --context my-" + in.Source.Context, plans.Destination: " --context my-" + in.Destination.Context}
	return i
}

// Bound returns a claim and the volume it is bound to.
func (e Estate) Bound(t *testing.T, name, volume, text string) []client.Object {
	t.Helper()
	pv, c := planstest.Parsed[corev1.PersistentVolume](t, text), corev1.PersistentVolumeClaim{}
	if e.Claim != "" {
		c.Spec = planstest.Parsed[corev1.PersistentVolumeClaimSpec](t, e.Claim)
	}
	c.Namespace, c.Name, c.UID, c.Spec.VolumeName, c.Status.Phase = "shop", name, types.UID("uid-of-"+name), volume, corev1.ClaimBound
	pv.Name, pv.Spec.ClaimRef = volume, &corev1.ObjectReference{Namespace: "shop", Name: name, UID: c.UID}
	return []client.Object{&c, &pv}
}

func (e Estate) cluster(objects []client.Object) client.Client {
	no := apierrors.NewForbidden(schema.GroupResource{Resource: e.Forbids}, "", nil)
	onNode := func(o client.Object) []string {
		p, _ := o.(*corev1.Pod)
		return []string{p.Spec.NodeName}
	}
	return Concurrent(fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithIndex(&corev1.Pod{}, "spec.nodeName", onNode).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: Powerless,
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			where := (&client.ListOptions{}).ApplyOptions(opts)
			if kind := fmt.Sprintf("%T", list); kind == e.Forbids || kind+"/" == e.Forbids && where.Namespace == "" {
				return no
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if fmt.Sprintf("%T", o) == e.Forbids {
				return no
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build())
}

// Powerless is how a fake API server answers who asks for his rights: he has none that could be asked for.
func Powerless(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	switch o.(type) {
	case *authorizationv1.SelfSubjectRulesReview, *authorizationv1.SelfSubjectAccessReview:
		return nil
	}
	return c.Create(ctx, o, opts...)
}

// Concurrent returns a fake client that many checks may use at once. The fake client adds kinds that it does not know to
// its scheme, and only its own requests wait for that.
func Concurrent(on client.WithWatch) client.Client { return concurrent{on, clusters.Scheme()} }

type concurrent struct {
	client.WithWatch

	known *runtime.Scheme
}

func (c concurrent) Scheme() *runtime.Scheme { return c.known }

func (c concurrent) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, c.known)
}

// Finds runs a check and compares its findings, one string for each finding: the finding must contain all
// words between the dots, FAIL or WARN first.
func (e Estate) Finds(t *testing.T, run func(context.Context, check.Inspection) ([]check.Finding, error), want ...string) {
	t.Helper()
	i := e.Inspected(t)
	found, err := run(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	ExpectFindings(t, found, want...)
	Unread(t, i, run)
}

// Unread lets each read of a check fail in turn. The check must return the error, and conclude nothing from what it has
// not read.
func Unread(t *testing.T, i check.Inspection, run func(context.Context, check.Inspection) ([]check.Finding, error)) {
	t.Helper()
	planstest.Unread(t, i.On, func(on map[plans.Side]client.Client) (plans.Observation, error) {
		failing := check.Inspect(i.Plan, on)
		failing.Now, failing.Flags = i.Now, i.Flags
		found, err := run(t.Context(), failing)
		return plans.Observation{Reason: fmt.Sprintf("%d findings", len(found))}, err
	})
}

// ExpectFindings compares findings with the words that they must contain, one string for each finding.
func ExpectFindings(t *testing.T, found []check.Finding, want ...string) {
	t.Helper()
	var lines []string
	for _, f := range found {
		level := f.Level
		if level == "" {
			level = check.Fail
		}
		lines = append(lines, string(level)+" "+f.String()+" "+f.Remedy)
	}
	if len(lines) != len(want) {
		t.Errorf("%d findings, expected %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
		return
	}
	for k, words := range want {
		for _, word := range strings.Split(words, "...") {
			if !strings.Contains(lines[k], word) {
				t.Errorf("%q is not in: %s", word, lines[k])
			}
		}
	}
}

// CustomObject returns an object of any kind from its YAML.
func CustomObject(t *testing.T, text string) client.Object {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// InstalledDriver returns the CSIDriver of this name.
func InstalledDriver(name string) client.Object {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// ConsentPlan returns a plan between two clusters that needs the consent of namespaces.
func ConsentPlan() *plans.Plan {
	return &plans.Plan{
		Name: "web", ID: "web-1a2b", Hash: "f00d",
		Source:      plans.Ref{Cluster: "uid-0", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "uid-1", Context: "west", Namespace: "mall", Name: "web"},
		Names:       plans.Names{Mode: plans.Bridge, Service: "web-headless"},
	}
}
