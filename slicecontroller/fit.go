package slicecontroller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// errOlder means that the definition of the kind is older than this release.
var errOlder = errors.New("is older than this release")

// fitEvery is how often a process that leads compares the definition of the kind with its release.
const fitEvery = 5 * time.Second

// fitting runs do for as long as look does not find an older definition of the kind. The API server leaves out the
// fields that the definition lacks from then on: a slice would be read as if its user had removed them. A definition
// that cannot be read, or is gone, shows nothing of that kind.
func fitting(ctx context.Context, every time.Duration, look, do func(context.Context) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(inner) }()
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-again.C:
			if err := look(inner); errors.Is(err, errOlder) {
				cancel()
				return errors.Join(err, <-done) // no pass is running any more
			}
		}
	}
}

// fit returns an error if the CustomResourceDefinition of slices is missing or older than this release
// (KEP-3335 on downgrade): the controller would drop fields, such as the range, on its next write, or find
// fields that have no value. A newer definition is accepted: only the slices that use its new fields are left
// unchanged.
func fit(ctx context.Context, c client.Client, config *rest.Config) error {
	var ours, theirs apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(manifests.CRD, &ours); err != nil {
		return err
	}
	err := c.Get(ctx, client.ObjectKeyFromObject(&ours), &theirs)
	served := schemaOf(theirs)
	if apierrors.IsForbidden(err) { // for callers with rights in namespaces only
		served, err = published(config, ours.Spec.Names.Kind)
	}
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the kind %s is not installed in the cluster: apply the manifests of this release first (slicecontroller/manifests)", ours.Spec.Names.Kind)
	case err != nil:
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", ours.Name, err)
	}
	if served == nil {
		return fmt.Errorf("CustomResourceDefinition %s does not serve %s: apply the definition of this release first", ours.Name, v1alpha1.GroupVersion().Version)
	}
	if lost := lacks(*schemaOf(ours), *served, ""); len(lost) > 0 {
		return fmt.Errorf("CustomResourceDefinition %s %w and lacks %s: apply the definition of this release first", ours.Name, errOlder, strings.Join(lost, ", "))
	}
	return nil
}

// published returns the schema of the kind that the API server publishes to every user, or nil.
func published(config *rest.Config, kind string) (*apiextensionsv1.JSONSchemaProps, error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	paths, err := c.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	path := paths["apis/"+v1alpha1.GroupVersion().String()]
	if path == nil {
		return nil, nil
	}
	raw, err := path.Schema("application/json")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Components struct {
			Schemas map[string]apiextensionsv1.JSONSchemaProps `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	for name, schema := range doc.Components.Schemas {
		if strings.HasSuffix(name, "."+kind) {
			return &schema, nil
		}
	}
	return nil, nil
}

// schemaOf returns the schema of the version that this release knows, or nil.
func schemaOf(d apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	for _, v := range d.Spec.Versions {
		if v.Name == v1alpha1.GroupVersion().Version && v.Served && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// lacks lists what the first schema has and the second one does not: fields, the values of a list of values,
// defaults, and all rules of a field. What is below a missing field is not listed, nor is a rule or a default
// that only differs: a later release may have changed it. If the second schema preserves unknown fields, no
// field is listed.
func lacks(wanted, has apiextensionsv1.JSONSchemaProps, at string) []string {
	out := poorer(wanted, has, at)
	if has.XPreserveUnknownFields != nil && *has.XPreserveUnknownFields {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Properties)) {
		below, there := has.Properties[name]
		path := strings.TrimPrefix(at+"."+name, ".")
		if !there {
			out = append(out, path)
			continue
		}
		out = append(out, lacks(wanted.Properties[name], below, path)...)
	}
	if w, h := wanted.Items, has.Items; w != nil && w.Schema != nil && h != nil && h.Schema != nil {
		out = append(out, lacks(*w.Schema, *h.Schema, at+"[]")...)
	}
	return out
}

// poorer lists what the second schema of a field lacks of the first one, apart from fields below.
func poorer(wanted, has apiextensionsv1.JSONSchemaProps, at string) []string {
	var out []string
	for _, v := range wanted.Enum {
		same := func(h apiextensionsv1.JSON) bool { return bytes.Equal(h.Raw, v.Raw) }
		if len(has.Enum) > 0 && !slices.ContainsFunc(has.Enum, same) {
			out = append(out, fmt.Sprintf("the value %s of %s", v.Raw, at))
		}
	}
	if wanted.Default != nil && has.Default == nil {
		out = append(out, "the default of "+at)
	}
	if len(wanted.XValidations) > 0 && len(has.XValidations) == 0 {
		out = append(out, "the rules of "+cmp.Or(at, "the kind"))
	}
	return out
}
