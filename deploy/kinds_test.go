package deploy

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// The API server accepts the kinds of the chart as they are: their schemas are structural, and no rule costs too much.
func TestTheKindsAreValid(t *testing.T) {
	for _, o := range decode(t, render(t, "stsmigrate", "orchestrator", "slicecontroller", "policies")) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		d := into[apiextensionsv1.CustomResourceDefinition](t, o)
		apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
		var in apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, &in, nil); err != nil {
			t.Fatal(err)
		}
		in.Status.StoredVersions = []string{d.Spec.Versions[0].Name}
		for _, e := range validation.ValidateCustomResourceDefinition(t.Context(), &in) {
			t.Errorf("%s: %v", d.Spec.Names.Kind, e)
		}
	}
}
