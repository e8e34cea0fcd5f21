package manifests

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// The API server accepts the kind as it is: its schema is structural, and no rule costs too much.
func TestTheKindIsValid(t *testing.T) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(CRD, &d); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&d)
	var in apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&d, &in, nil); err != nil {
		t.Fatal(err)
	}
	in.Status.StoredVersions = []string{"v1alpha1"}
	for _, e := range validation.ValidateCustomResourceDefinition(t.Context(), &in) {
		t.Error(e)
	}
}
