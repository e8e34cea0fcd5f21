package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
)

// fields returns the paths of all fields of a document.
func fields(of reflect.Type, at string) []string {
	switch of {
	case reflect.TypeFor[batchv1.JobSpec](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Duration]():
		return nil // they are what Kubernetes makes of them
	}
	switch of.Kind() {
	case reflect.Pointer:
		return fields(of.Elem(), at)
	case reflect.Slice:
		return fields(of.Elem(), at+"[]")
	case reflect.Struct:
	default:
		return nil
	}
	var out []string
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && strings.Contains(options, "inline"):
			out = append(out, fields(f.Type, at)...)
		default:
			out = append(out, at+"."+name)
			out = append(out, fields(f.Type, at+"."+name)...)
		}
	}
	return out
}

// The API server drops a field that only the Declaration has, and the orchestrator refuses a spec with a field that only
// the kind has.
func TestTheSpecHasTheFieldsOfADeclaration(t *testing.T) {
	kind := fields(reflect.TypeFor[StatefulSetMigrationSpec](), "spec")
	read := fields(reflect.TypeFor[plans.Declaration](), "spec")
	// Files on the machine of a user, what a probe of Kubernetes has and a gate must leave out, and what a plan says itself.
	read = slices.DeleteFunc(read, func(path string) bool {
		return strings.HasSuffix(path, ".kubeconfig") || path == "spec.destination.patches[].path" || path == "spec.gates[].httpGet.protocol" || path == "spec.placeholder.why"
	})
	if len(kind) < 50 {
		t.Errorf("only %d fields were found", len(kind))
	}
	for _, path := range kind {
		if !slices.Contains(read, path) {
			t.Errorf("plans.Declaration has no %s: the orchestrator refuses an object that has it", path)
		}
	}
	for _, path := range read {
		if !slices.Contains(kind, path) {
			t.Errorf("the kind has no %s: the API server drops it", path)
		}
	}
}
