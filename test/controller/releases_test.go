package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

// definition returns the kind of this release, and its schema, which the caller may change.
func definition(t *testing.T) (o *unstructured.Unstructured, schema map[string]any) {
	t.Helper()
	o = &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifests.CRD, &o.Object); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil { // so that the map below is that of the object
		t.Fatal(err)
	}
	all, _ := o.Object["spec"].(map[string]any)["versions"].([]any)
	one, _ := all[0].(map[string]any)
	outer, _ := one["schema"].(map[string]any)
	schema, _ = outer["openAPIV3Schema"].(map[string]any)
	if schema == nil {
		t.Fatal("the kind has no schema")
	}
	return o, schema
}

// fields returns the properties of an object in a schema.
func fields(schema map[string]any, path ...string) map[string]any {
	for _, p := range path {
		below, _ := schema["properties"].(map[string]any)
		schema, _ = below[p].(map[string]any)
	}
	out, _ := schema["properties"].(map[string]any)
	return out
}

// withoutRules removes the rules, which name fields that an earlier release did not have.
func withoutRules(schema map[string]any) {
	delete(schema, "x-kubernetes-validations")
	for _, below := range schema {
		switch b := below.(type) {
		case map[string]any:
			withoutRules(b)
		case []any:
			for _, each := range b {
				if m, ok := each.(map[string]any); ok {
					withoutRules(m)
				}
			}
		}
	}
}

// define makes the API server serve this definition of the kind, and waits until it does.
func (s *side) define(t *testing.T, o *unstructured.Unstructured, serves func(context.Context) bool) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the API server writes the status, too
		var now unstructured.Unstructured
		now.SetGroupVersionKind(o.GroupVersionKind())
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), &now); err != nil {
			return err
		}
		o.SetResourceVersion(now.GetResourceVersion())
		return s.Update(t.Context(), o)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), quiet, patience, true, func(ctx context.Context) (bool, error) { return serves(ctx), nil })
	if err != nil {
		t.Fatalf("the API server has not taken the kind over: %v", err)
	}
	s.listen(t, &v1alpha1.StatefulSetSliceList{}) // the previous watch ended with the previous definition
}

// raw returns the slice as it is stored.
func (s *side) raw(ctx context.Context) map[string]any {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(slicerig.Slice)
	o.SetKind("StatefulSetSlice")
	if s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, o) != nil {
		return nil
	}
	return o.Object
}

// release is a cluster in which the kind and the program have different releases.
type release struct {
	*side
	t         *testing.T
	installed *slicerig.Installed
}

// refused starts a process that must refuse to work, and returns its output.
func (r *release) refused() string {
	r.t.Helper()
	p := r.begins()
	if err := <-p.Done; err == nil {
		r.t.Fatalf("it ended well\n%s", p.Output())
	}
	return p.Output()
}

func (r *release) begins(flags ...string) *slicerig.Process {
	r.t.Helper()
	return begin(r.t, r.installed.Kubeconfig, slicerig.Slice, flags...)
}

func (r *release) ends(p *slicerig.Process) {
	r.t.Helper()
	if err := p.Stop(); err != nil {
		r.t.Fatal(err)
	}
}

// keeps reports whether the API server keeps a field of the spec.
func (r *release) keeps(spec, field string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		probe := r.written(r.t, "  "+spec)
		probe.SetName("probe")
		err := r.Create(ctx, probe, client.DryRunAll)
		_, found, _ := unstructured.NestedFieldNoCopy(probe.Object, "spec", field)
		return err == nil && found
	}
}

// Releases that do not fit together refuse to work rather than drop fields (3335-41, 3335-42, 3541-26). A
// slice stored by an earlier release is left unchanged (961-40, 2599-13).
func TestReleasesThatDoNotFitRefuse(t *testing.T) {
	t.Parallel()
	_, installed, p, s := another(t, slicerig.Slice)
	r := &release{s, t, installed}
	if err := r.Create(t.Context(), r.written(t, "  replicas: 3\n  ordinals: {start: 2}")); err != nil {
		t.Fatal(err)
	}
	r.updated(t, 3)
	r.ends(p)
	r.mistyped()
	r.earlier()
	r.later()
}

// mistyped stores a slice whose template cannot be read, under a definition that does not validate
// templates. The other slices are reconciled, and so is this one, with its previous template.
func (r *release) mistyped() {
	r.t.Helper()
	kind, schema := definition(r.t)
	fields(schema, "spec")["template"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	const wrong = "template: {metadata: {labels: {app: web, version: 2}}, spec: {containers: [{name: web, image: web}]}}"
	r.define(r.t, kind, r.keeps(wrong, "template"))
	r.listen(r.t, &corev1.EventList{})
	p := r.begins()
	if err := r.patch(r.t.Context(), `{"template":{"spec":{"containers":[{"name":"web","image":"web","env":[{"name":"PORT","value":8080}]}]}}}`); err != nil {
		r.t.Fatal(err)
	}
	r.until(r.t, "it says so", func(ctx context.Context) bool { return r.hasEvent(ctx, "NotUnderstood") })
	bad := r.written(r.t, "  "+wrong)
	bad.SetName("bad")
	if err := r.Create(r.t.Context(), bad); err != nil {
		r.t.Fatal(err)
	}
	good := r.written(r.t, "  replicas: 1")
	good.SetName("good")
	if err := r.Create(r.t.Context(), good); err != nil {
		r.t.Fatal(err)
	}
	r.until(r.t, "the others go on", r.has("good-0", "web-2", "web-3", "web-4"))
	r.ends(p)
	p = r.begins()
	for _, pod := range []string{"good-0", "web-3"} {
		before := r.uids(r.t)[pod]
		if err := r.Delete(r.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: pod}}); err != nil {
			r.t.Fatal(err)
		}
		r.until(r.t, pod+" comes back under another process", func(ctx context.Context) bool {
			return r.has("good-0", "web-2", "web-3", "web-4")(ctx) && r.uids(r.t)[pod] != before
		})
	}
	for _, o := range []*unstructured.Unstructured{bad, good} {
		if err := r.Delete(r.t.Context(), o); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.patch(r.t.Context(), `{"template":{"spec":{"containers":[{"name":"web","image":"web"}]}}}`); err != nil {
		r.t.Fatal(err)
	}
	r.until(r.t, "the pod of the other is gone", r.has("web-2", "web-3", "web-4"))
	r.updated(r.t, 3)
	r.ends(p)
	kind, _ = definition(r.t)
	r.define(r.t, kind, func(ctx context.Context) bool {
		probe := r.written(r.t, "  "+wrong)
		probe.SetName("probe")
		return apierrors.IsInvalid(r.Create(ctx, probe, client.DryRunAll))
	})
}

// earlier stores a slice under a definition that lacks fields.
func (r *release) earlier() {
	r.t.Helper()
	running := r.begins()
	before := r.uids(r.t)["web-3"]
	if err := r.Delete(r.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "web-3"}}); err != nil {
		r.t.Fatal(err)
	}
	r.until(r.t, "it runs", func(ctx context.Context) bool {
		return r.has("web-2", "web-3", "web-4")(ctx) && r.uids(r.t)["web-3"] != before
	})
	r.updated(r.t, 3)
	r.taken()
	kind, schema := definition(r.t)
	withoutRules(schema)
	delete(fields(schema, "status"), "availableReplicas")
	delete(fields(schema, "spec"), "minReadySeconds")
	delete(fields(schema, "spec", "updateStrategy", "rollingUpdate"), "maxUnavailable")
	r.define(r.t, kind, func(ctx context.Context) bool {
		_, found, _ := unstructured.NestedFieldNoCopy(r.raw(ctx), "status", "availableReplicas")
		return !found
	})
	if err := <-running.Done; err == nil || !strings.Contains(running.Output(), "is older than this release and lacks ") {
		r.t.Errorf("a process that runs goes on under an older definition: %v\n%s", err, running.Output())
	}
	said := r.refused()
	for _, lost := range []string{"is older than this release and lacks ", "spec.minReadySeconds, ", "the rules of spec, ", "spec.updateStrategy.rollingUpdate.maxUnavailable, ", "status.availableReplicas: apply the definition of this release first"} {
		if !strings.Contains(said, lost) {
			r.t.Errorf("%q is not in %q", lost, said)
		}
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		store := &unstructured.Unstructured{Object: r.raw(r.t.Context())} // without the lacking fields
		store.SetLabels(map[string]string{"stored": "again"})
		return r.Update(r.t.Context(), store)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	kind, _ = definition(r.t)
	r.define(r.t, kind, r.keeps("minReadySeconds: 1", "minReadySeconds"))
	if status, _, _ := unstructured.NestedMap(r.raw(r.t.Context()), "status"); status["readyReplicas"] != int64(3) || status["availableReplicas"] != nil && status["availableReplicas"] != int64(0) {
		r.t.Fatalf("2599-13: stored was %v", status)
	}
	p := r.begins()
	r.updated(r.t, 3) // availableReplicas is 3 again
	r.ends(p)
	if did := r.taken(); len(did) > 0 {
		r.t.Errorf("961-40: it did %v", did)
	}
}

// later installs a definition with a field that this release does not know.
func (r *release) later() {
	r.t.Helper()
	kind, schema := definition(r.t)
	fields(schema, "spec")["later"] = map[string]any{"type": "boolean"}
	r.define(r.t, kind, r.keeps("later: true", "later"))
	r.listen(r.t, &corev1.EventList{})
	p := r.begins(r.installed.Webhook...)
	if err := r.installed.Answers(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if err := r.patch(r.t.Context(), `{"later":true}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.later: Forbidden: the slice controller of this cluster does not know this field") {
		r.t.Errorf("the webhook: %v", err)
	}
	if err := r.patch(r.t.Context(), `{"replicas":2}`); err != nil { // a newer definition is no obstacle by itself
		r.t.Error(err)
	}
	r.updated(r.t, 2)
	if did := deletions(r.taken()); !slices.Equal(did, []string{"-4"}) {
		r.t.Errorf("it did %v", did)
	}
	r.ends(p)
	if err := r.patch(r.t.Context(), `{"later":true}`); err != nil { // no webhook is served, and failurePolicy is Ignore
		r.t.Fatal(err)
	}
	if err := r.patch(r.t.Context(), `{"replicas":0}`); err != nil {
		r.t.Fatal(err)
	}
	r.begins()
	r.until(r.t, "the slice is left alone", func(ctx context.Context) bool { return r.hasEvent(ctx, "NotUnderstood") })
	if did := r.taken(); len(did) > 0 {
		r.t.Errorf("it did %v", did)
	}
	if err := r.patch(r.t.Context(), `{"later":null}`); err != nil {
		r.t.Fatal(err)
	}
	r.until(r.t, "without the field it is taken care of", r.has())
}
