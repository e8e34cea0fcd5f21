package controller_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stsmigrate/stsmigrate/deploy"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

// With the Roles of one namespace, as the chart creates them, and no cluster-wide rights, the controller
// manages the slices of that namespace and no others.
func TestOneNamespaceIsTakenCareOf(t *testing.T) {
	here, there := away(t, "here"), away(t, "there")
	home := here.namespace + "-home"
	if err := here.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}); err != nil {
		t.Fatal(err)
	}
	raw, err := deploy.Render(home, "", map[string]any{
		"slicecontroller": map[string]any{"enabled": true, "namespaces": []any{here.namespace}}, "orchestrator": map[string]any{"enabled": false}, "account": map[string]any{"create": false},
	})
	if err != nil {
		t.Fatal(err)
	}
	here.install(t, raw)
	config, _, err := fixture.Credentials(t.Context(), here.WithWatch, bed.East, home, "slicecontroller")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*side{there, here} {
		if err := s.Create(t.Context(), s.written(t, "  replicas: 2\n  deletionProtection: true\n  updateStrategy: {evict: true}")); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, kubeconfig, slicerig.Slice, "--leader-elect=true", "--namespaces="+here.namespace)
	here.until(t, "two pods", here.has("web-0", "web-1"))
	if err := here.patch(t.Context(), `{"template":{"metadata":{"annotations":{"a":"b"}}}}`); err != nil {
		t.Fatal(err)
	}
	here.updated(t, 2)
	here.until(t, "events are told", func(ctx context.Context) bool { return here.hasEvent(ctx, "SuccessfulEvict") })
	if o := there.slice(t); o.Status.ObservedGeneration != 0 || len(o.Finalizers) > 0 || len(there.pods(t.Context())) > 0 {
		t.Errorf("the slice of another namespace was taken care of: %+v, pods %v", o.Status, there.pods(t.Context()))
	}
}

// install creates all objects of a manifest.
func (s *side) install(t *testing.T, raw []byte) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
