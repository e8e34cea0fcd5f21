// Command kind changes the CustomResourceDefinition that controller-gen has written into the one that is installed. Of the
// pod template controller-gen cannot say that:
//
//   - nothing is described: with every field of a pod the kind would be larger than the annotation in which kubectl apply
//     keeps what was applied
//   - fields that are not known are kept, at any depth: they are of a later Kubernetes
//   - null is nothing, as in the API server's own kinds
//   - nothing is filled in but what the key of a list item needs: the rest is for the API server that makes the pods
//
// It gives claim templates the bounds that their rules need.
package main

import (
	"errors"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("expected the file of the kind, as controller-gen has written it")
	}
	raw, err := os.ReadFile(args[0]) //nolint:gosec // the one that is to be changed
	if err != nil {
		return err
	}
	out, err := installed(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[0], out, 0o644) //nolint:gosec // everybody may read it
}

// installed is the kind as it is installed.
func installed(raw []byte) ([]byte, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &d); err != nil {
		return nil, err
	}
	for k := range d.Spec.Versions {
		spec := d.Spec.Versions[k].Schema.OpenAPIV3Schema.Properties["spec"]
		template := spec.Properties["template"]
		template.Properties = each(template.Properties, lenient)
		keeps(&template)
		spec.Properties["template"] = template
		claims := spec.Properties["volumeClaimTemplates"]
		claims.Items.Schema.Properties = each(claims.Items.Schema.Properties, silent)
		named(claims.Items.Schema)
		spec.Properties["volumeClaimTemplates"] = claims
	}
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
	if err != nil {
		return nil, err
	}
	delete(doc, "status")
	out, err := yaml.Marshal(doc)
	return append([]byte("---\n"), out...), err
}

type properties = map[string]apiextensionsv1.JSONSchemaProps

func each(all properties, change func(apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps) properties {
	for name, s := range all {
		all[name] = change(s)
	}
	return all
}

// The rules of a kind must not cost too much at worst, so that the texts that they compare have to have an end.
const (
	longestName     = int64(253)
	longestQuantity = int64(64)
)

// named is a claim template whose name the claims of the ordinals begin with.
func named(claim *apiextensionsv1.JSONSchemaProps) {
	metadata := claim.Properties["metadata"]
	name, longest, shortest := metadata.Properties["name"], longestName, int64(1)
	name.MinLength, name.MaxLength = &shortest, &longest
	metadata.Properties["name"], metadata.Required = name, []string{"name"}
	claim.Properties["metadata"], claim.Required = metadata, []string{"metadata", "spec"}
}

// silent is the schema of a field of a claim template.
func silent(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	s.Description = ""
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema.XIntOrString {
		longest := longestQuantity
		s.AdditionalProperties.Schema.MaxLength = &longest
	}
	s.Properties = each(s.Properties, silent)
	below(&s, silent)
	return s
}

// lenient is the schema of a field of a pod template.
func lenient(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	s.Description, s.Default, s.Nullable = "", nil, true
	s.Properties = each(s.Properties, lenient)
	below(&s, lenient)
	keeps(&s)
	if s.Items == nil {
		return s
	}
	item := s.Items.Schema
	item.Nullable = false
	for _, key := range s.XListMapKeys {
		k := item.Properties[key]
		k.Nullable = false
		if !required(*item, key) {
			k.Default = &apiextensionsv1.JSON{Raw: []byte(fallback(key))}
		}
		item.Properties[key] = k
	}
	return s
}

// keeps lets an object keep the fields that its schema does not have.
func keeps(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	if s.Type == "object" && s.Properties != nil {
		yes := true
		s.XPreserveUnknownFields = &yes
	}
}

// below changes the schema of what is in a list or in a map.
func below(s *apiextensionsv1.JSONSchemaProps, change func(apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps) {
	if s.Items != nil {
		item := change(*s.Items.Schema)
		s.Items.Schema = &item
	}
	if s.AdditionalProperties != nil {
		value := change(*s.AdditionalProperties.Schema)
		s.AdditionalProperties.Schema = &value
	}
}

func required(s apiextensionsv1.JSONSchemaProps, field string) bool {
	for _, r := range s.Required {
		if r == field {
			return true
		}
	}
	return false
}

// fallback is what the API server takes the key of a list item for where it is missing.
func fallback(key string) string {
	if key == "protocol" {
		return `"TCP"`
	}
	return `""`
}
