package slicecontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
)

// An installed kind that would drop a field on the next write keeps the controller from starting. One that has more
// fields does not.
func TestAKindThatDropsFieldsIsNotReconciled(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	type schema = apiextensionsv1.JSONSchemaProps
	for name, c := range map[string]struct {
		change func(d *apiextensionsv1.CustomResourceDefinition, spec map[string]schema)
		want   string
	}{
		"that of this release": {func(*apiextensionsv1.CustomResourceDefinition, map[string]schema) {}, ""},
		"a newer one":          {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) { spec["later"] = schema{} }, ""},
		"another one":          {func(d *apiextensionsv1.CustomResourceDefinition, _ map[string]schema) { d.Name = "others.example.com" }, "is not installed in the cluster"},
		"without a field": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			delete(spec, "ordinals")
		}, "is older than this release and lacks spec.ordinals: "},
		"without a field inside another": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			delete(spec["updateStrategy"].Properties, "evict")
		}, "lacks spec.updateStrategy.evict: "},
		"without a field of list items": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			delete(spec["volumeClaimTemplates"].Items.Schema.Properties, "metadata")
		}, "lacks spec.volumeClaimTemplates[].metadata: "},
		"without a value": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			strategies := spec["updateStrategy"].Properties["type"]
			strategies.Enum = strategies.Enum[:1]
			spec["updateStrategy"].Properties["type"] = strategies
		}, `lacks the value "EnforcedRollingUpdate" of spec.updateStrategy.type, the value "OnDelete" of spec.updateStrategy.type: `},
		"with another value": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			strategies := spec["updateStrategy"].Properties["type"]
			strategies.Enum = append(strategies.Enum, apiextensionsv1.JSON{Raw: []byte(`"Later"`)})
			spec["updateStrategy"].Properties["type"] = strategies
		}, ""},
		"without a list of values": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			strategies := spec["updateStrategy"].Properties["type"]
			strategies.Enum = nil
			spec["updateStrategy"].Properties["type"] = strategies
		}, ""},
		"without a default": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			replicas := spec["replicas"]
			replicas.Default = nil
			spec["replicas"] = replicas
		}, "lacks the default of spec.replicas: "},
		"without the rules of a field": {func(_ *apiextensionsv1.CustomResourceDefinition, spec map[string]schema) {
			strategy := spec["updateStrategy"]
			strategy.XValidations = nil
			spec["updateStrategy"] = strategy
		}, "lacks the rules of spec.updateStrategy: "},
		"of which the version is not served": {func(d *apiextensionsv1.CustomResourceDefinition, _ map[string]schema) {
			d.Spec.Versions[0].Served = false
		}, "does not serve v1alpha1"},
	} {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(manifests.CRD, d); err != nil {
			t.Fatal(err)
		}
		c.change(d, d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties)
		err := fit(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(d).Build(), nil)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

// A definition that becomes older than this release ends the process: what it reads of slices from then on lacks fields.
// Nothing else that is found out about the definition does.
func TestAProcessEndsWhenTheKindBecomesOlder(t *testing.T) {
	older := fmt.Errorf("CustomResourceDefinition x %w", errOlder)
	for name, c := range map[string]struct {
		found []error // by the looks, one after the other
		want  error
	}{
		"it becomes older":                {[]error{nil, nil, older}, older},
		"after an outage, and a deletion": {[]error{errors.New("no answer"), errors.New("the kind is not installed"), older}, older},
		"it stays":                        {[]error{nil, errors.New("no answer"), errors.New("the kind is not installed")}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			looks, ended := 0, false
			err := fitting(ctx, time.Millisecond, func(context.Context) error {
				looks++
				if looks > len(c.found) {
					cancel()
					return nil
				}
				return c.found[looks-1]
			}, func(ctx context.Context) error {
				<-ctx.Done()
				ended = true
				return ctx.Err()
			})
			if !errors.Is(err, c.want) || errors.Is(err, errOlder) != (name != "it stays") || !ended {
				t.Errorf("%v, expected %v; it has ended: %t", err, c.want, ended)
			}
		})
	}
}
