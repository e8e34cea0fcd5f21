package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What is created in it is refused, and what is there goes with it.
func TestNothingIsInstalledOntoWhatIsGoing(t *testing.T) {
	for kind, version := range map[string]string{"Namespace": "v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1", "ConfigMap": "v1"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "it"}}}
		there := o.DeepCopy()
		there.SetFinalizers([]string{"example.com/held"})
		on := fake.NewClientBuilder().WithObjects(there).Build()
		if err := free(t.Context(), on, "ours", o); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := on.Delete(t.Context(), there); err != nil {
			t.Fatal(err)
		}
		err := free(t.Context(), on, "ours", o)
		if told := err != nil && strings.Contains(err.Error(), "/it is being deleted, and nothing was applied"); told != (kind != "ConfigMap") {
			t.Errorf("%s that is being deleted: %v", kind, err)
		}
	}
}
