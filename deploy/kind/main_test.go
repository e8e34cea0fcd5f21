package main

import (
	"bytes"
	"os"
	"testing"
)

// A field, a marker or a comment that is changed in the types is not in the kind until it is generated anew, and what is
// changed in the generated file is lost then.
func TestTheKindsAreGeneratedOfTheirTypes(t *testing.T) {
	for file, types := range map[string]string{
		"../chart/statefulsetmigrations.yaml": "../../internal/api/v1alpha1/types.go",
		"../chart/volumeconsents.yaml":        "../../internal/api/consent/types.go",
		"../chart/statefulsetslices.yaml":     "../../slicecontroller/v1alpha1/types.go",
	} {
		kind, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(types)
		if err != nil {
			t.Fatal(err)
		}
		_, crd, _ := bytes.Cut(bytes.TrimPrefix(kind, []byte("---\n")), []byte("\n"))
		if !bytes.Equal(kind, sealed(crd, source)) {
			t.Errorf("%s is not what is generated of %s: run `make generate`", file, types)
		}
	}
}
