package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// estate is a set with one volume for each of its ordinals, and what else the clusters have.
type estate struct {
	// volumes are the sources of the volumes, as PersistentVolumes in short YAML.
	volumes []string
	// claim is the spec of the claims, besides their volume.
	claim string
	// shared is the claim that the pod template names, if it has a volume too.
	shared  string
	spec    string // of the pods
	patch   string
	storage plans.Storage
	one     bool // cluster
	here    []client.Object
	there   []client.Object
	// forbids is a kind of list that nobody may have, such as "*v1.ServiceList".
	forbids string
}

// inspected makes the plan and what the checks look at.
func (e estate) inspected(t *testing.T) inspection {
	t.Helper()
	replicas := int32(max(len(e.volumes), 1))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	if e.spec != "" {
		set.Spec.Template.Spec = planstest.Parsed[corev1.PodSpec](t, e.spec)
	}
	if len(e.volumes) > 0 {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	in := plans.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Set: set, Storage: e.storage,
		Source:      plans.Ref{Cluster: "one", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "two", Context: "west", Namespace: "mall", Name: "web"},
	}
	if e.one {
		in.Destination.Cluster, in.Destination.Context = "one", "east"
	}
	if e.patch != "" {
		in.Patches = []plans.Patch{{Patch: e.patch}}
	}
	here := slices.Clone(e.here)
	for n, text := range e.volumes {
		here = append(here, e.bound(t, fmt.Sprintf("data-web-%d", n), fmt.Sprintf("pv-%d", n), text)...)
	}
	if e.shared != "" {
		here = append(here, e.bound(t, "media", "pv-media", e.shared)...)
	}
	on := clusters.Clusters{plans.Source: e.cluster(here), plans.Destination: e.cluster(e.there)}
	if e.one {
		on[plans.Destination] = on[plans.Source]
	}
	var err error
	if in.Shared, err = (survey{clusters.Pair{Plan: &plans.Plan{Source: in.Source, Destination: in.Destination}, On: on}}).sharedVolumes(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	p, err := plans.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	i := inspect(p, on)
	i.now = in
	return i
}

// bound is a claim and the volume it is bound to.
func (e estate) bound(t *testing.T, name, volume, text string) []client.Object {
	t.Helper()
	pv, c := planstest.Parsed[corev1.PersistentVolume](t, text), corev1.PersistentVolumeClaim{}
	if e.claim != "" {
		c.Spec = planstest.Parsed[corev1.PersistentVolumeClaimSpec](t, e.claim)
	}
	c.Namespace, c.Name, c.UID, c.Spec.VolumeName, c.Status.Phase = "shop", name, types.UID("uid-of-"+name), volume, corev1.ClaimBound
	pv.Name, pv.Spec.ClaimRef = volume, &corev1.ObjectReference{Namespace: "shop", Name: name, UID: c.UID}
	return []client.Object{&c, &pv}
}

func (e estate) cluster(objects []client.Object) client.Client {
	no := apierrors.NewForbidden(schema.GroupResource{Resource: e.forbids}, "", nil)
	onNode := func(o client.Object) []string {
		p, _ := o.(*corev1.Pod)
		return []string{p.Spec.NodeName}
	}
	return fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithIndex(&corev1.Pod{}, "spec.nodeName", onNode).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if fmt.Sprintf("%T", list) == e.forbids {
				return no
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

// finds runs a check, and compares what it finds, a line for each finding: all words between
// the dots must be in it, FAIL or WARN first.
func (e estate) finds(t *testing.T, check func(context.Context, inspection) ([]Finding, error), want ...string) {
	t.Helper()
	found, err := check(t.Context(), e.inspected(t))
	if err != nil {
		t.Fatal(err)
	}
	expectFindings(t, found, want...)
}

func expectFindings(t *testing.T, found []Finding, want ...string) {
	t.Helper()
	var lines []string
	for _, f := range found {
		level := f.Level
		if level == "" {
			level = Fail
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
