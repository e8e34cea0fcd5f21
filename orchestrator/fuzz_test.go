package orchestrator

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// eventful is a plan with something of everything.
func eventful(tb testing.TB) *plans.Plan {
	tb.Helper()
	replicas, set := int32(3), varied()
	set.Spec.Replicas = &replicas
	p, err := plans.Build(plans.Inputs{
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

func varied() *appsv1.StatefulSet {
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

// Whatever stands in a plan that is read, to look at it ends, and takes no more than the plan may have.
func FuzzPlan(f *testing.F) {
	whole, err := json.Marshal(eventful(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = plans.DecodePlan(raw) // which has a hash that fits as good as never
		var p plans.Plan
		if json.Unmarshal(raw, &p) != nil {
			return
		}
		p.Hash = ""
		if p.Hash, err = plans.Fingerprinted(p); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		read, err := plans.DecodePlan(raw)
		if err != nil {
			return
		}
		handled(t, read)
	})
}

// agreedTo wants what a namespace is given to agree with to agree.
func agreedTo(t *testing.T, p *plans.Plan) {
	t.Helper()
	for _, n := range Parties(p) {
		if _, why := n.agrees(p, n.Agree(p, noon().Add(time.Hour), nil), noon()); why != "" {
			t.Errorf("consent of namespace %s on the %s: %s", n.Namespace, n.Side, why)
		}
	}
}

// handled does with a plan what is done before anybody asks a cluster.
func handled(t *testing.T, p *plans.Plan) {
	t.Helper()
	if d, err := plans.Destined(varied(), p); err == nil {
		if raw, err := json.Marshal(d); err != nil || len(raw) > 1<<20 {
			t.Errorf("the destination's set takes %d bytes, %v", len(raw), err)
		}
		if _, err := plans.Changes(varied(), d); err != nil {
			t.Error(err)
		}
		plans.Dependencies(d)
	}
	for _, side := range plans.Sides() {
		for _, r := range Rights(p, side) {
			if len(r.Names) > 500_000 {
				t.Errorf("%d names of %s", len(r.Names), r.Resource)
			}
		}
		Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, []string{"pv"})
	}
	agreedTo(t, p)
	for _, s := range p.Shared {
		storage.Canonical(s.Handle)
	}
	plans.Render(p, plans.NewJournal(p).Leg)
	first := plans.NewJournal(p)
	step, _, _ := first.Next(p)
	for _, g := range p.Gates {
		if name := p.JobName(g, step, p.Start); len(name) > 63 {
			t.Errorf("Job %s", name)
		}
	}
	State(p, first, "")
	OneSideOpen(p, first)
	store := NewStore(fake.NewClientBuilder().WithScheme(Scheme()).Build(), "stsmigrate", p.Name)
	if err := store.Create(t.Context(), p, first); err != nil {
		t.Fatalf("it is read and cannot be stored: %v", err)
	}
	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	lost := map[plans.Side]error{plans.Source: errors.New("away"), plans.Destination: errors.New("away")}
	v, err := Status(t.Context(), p, store, Clusters{}, lost, clock, func(verb string) string { return verb })
	if err != nil || slices.ContainsFunc(v.Ordinals, func(o OrdinalView) bool { return !p.Ordinals().Has(o.Ordinal) }) {
		t.Errorf("%+v, %v", v, err)
	}
}
