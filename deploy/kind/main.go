// Command kind edits the CustomResourceDefinition that controller-gen has generated into the one that is
// installed. controller-gen cannot express some rules. For the pod template of a StatefulSetSlice:
//
//   - No descriptions of its fields: with every field of a pod described, the CRD would exceed the annotation in which
//     kubectl apply keeps the last applied object.
//   - Unknown fields are kept, at any depth: they belong to a later Kubernetes.
//   - null means absent, as in the API server's own kinds.
//   - Only the key of a list item gets a default. All other defaults are set by the API server that creates
//     the pods.
//
// It gives claim templates the bounds that their rules need. The spec of a volume in a VolumeConsent is one value. Of a
// StatefulSetMigration it bounds the name and the number of maxUnavailable and the lists in the Job of a gate, and leaves
// conditions unbounded.
package main

import (
	"crypto/sha256"
	_ "embed"
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
	if len(args) != 2 {
		return errors.New("expected two arguments: the CRD file that controller-gen has generated, and the Go file of its types")
	}
	raw, err := os.ReadFile(args[0]) //nolint:gosec // the one that is to be changed
	if err != nil {
		return err
	}
	types, err := os.ReadFile(args[1]) //nolint:gosec // the one that the user names
	if err != nil {
		return err
	}
	out, err := installed(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[0], sealed(out, types), 0o644) //nolint:gosec // everybody may read it
}

// program is the source of this program.
//
//go:embed main.go
var program []byte

// sealed returns a CRD as it is stored: below a line that fits only this CRD, its types and this program. If one of them
// changes without the others, a test finds that the line does not fit.
func sealed(crd, types []byte) []byte {
	sum := sha256.New()
	for _, part := range [][]byte{types, program, crd} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return fmt.Appendf(nil, "---\n# Made by `make generate` of the Go types. Seal: %x\n%s", sum.Sum(nil), crd)
}

// installed returns the CRD as it is installed.
func installed(raw []byte) ([]byte, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &d); err != nil {
		return nil, err
	}
	for k := range d.Spec.Versions {
		root := d.Spec.Versions[k].Schema.OpenAPIV3Schema
		switch d.Spec.Names.Kind {
		case "StatefulSetSlice":
			slice(root)
		case "StatefulSetMigration":
			migration(root)
		case "VolumeConsent":
			consent(root)
		default:
			return nil, fmt.Errorf("the kind %s is not known", d.Spec.Names.Kind)
		}
	}
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
	if err != nil {
		return nil, err
	}
	delete(doc, "status")
	return yaml.Marshal(doc)
}

// slice changes the schema of a StatefulSetSlice.
func slice(root *apiextensionsv1.JSONSchemaProps) {
	spec := root.Properties["spec"]
	template := spec.Properties["template"]
	template.Properties = each(template.Properties, lenient)
	about := template.Description
	keeps(&template)
	template.Description = about
	spec.Properties["template"] = template
	claims := spec.Properties["volumeClaimTemplates"]
	claims.Items.Schema.Properties = each(claims.Items.Schema.Properties, silent)
	named(claims.Items.Schema)
	spec.Properties["volumeClaimTemplates"] = claims
}

// The longest name of a plan, of which the names of other objects are made, and what maxUnavailable may be as a number.
const (
	longestPlan      = int64(40)
	leastUnavailable = float64(1)
	mostUnavailable  = float64(10000)
)

// migration changes the schema of a StatefulSetMigration. Its name is that of a plan. Only the orchestrator writes
// conditions, and a bound would only refuse its report.
func migration(root *apiextensionsv1.JSONSchemaProps) {
	longest := longestPlan
	root.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties{
		"name": {Type: "string", MaxLength: &longest, Pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
	}}
	least, all := leastUnavailable, mostUnavailable
	unavailable := root.Properties["spec"].Properties["maxUnavailable"]
	unavailable.Minimum, unavailable.Maximum = &least, &all
	root.Properties["spec"].Properties["maxUnavailable"] = unavailable
	gate := root.Properties["spec"].Properties["gates"].Items.Schema
	job, most := gate.Properties["job"], mostInPod
	job.MaxProperties = &most
	job.Properties = properties{"template": kept(properties{"spec": kept(listsOfPods())})}
	gate.Properties["job"] = job
	condition := root.Properties["status"].Properties["conditions"].Items.Schema
	condition.Description = ""
	condition.Properties = each(condition.Properties, func(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		s.MinLength, s.MaxLength, s.Minimum, s.Pattern = nil, nil, nil, ""
		return s
	})
}

// consent changes the schema of a VolumeConsent: no writer owns parts of the spec of a volume, and to note who has set
// which of its fields would take as much room again.
func consent(root *apiextensionsv1.JSONSchemaProps) {
	volumes := root.Properties["spec"].Properties["volumes"].Items.Schema
	spec, atomic := volumes.Properties["spec"], "atomic"
	spec.XMapType = &atomic
	volumes.Properties["spec"] = spec
}

// mostInPod is how many of anything a pod of a gate may have. The Job is kept as it is, so that the API server would take
// lists without end, and elements of three bytes become a thousand in memory.
const mostInPod = int64(64)

// listsOfPods returns the schemas of the lists of a pod whose elements take most memory.
func listsOfPods() properties {
	out, most, yes := properties{}, mostInPod, true
	for _, name := range []string{"containers", "initContainers", "volumes"} {
		out[name] = apiextensionsv1.JSONSchemaProps{Description: "As in any pod.", Type: "array", MaxItems: &most, Items: &apiextensionsv1.JSONSchemaPropsOrArray{
			Schema: &apiextensionsv1.JSONSchemaProps{Description: "As in any pod.", XPreserveUnknownFields: &yes, Type: "object", MaxProperties: &most},
		}}
	}
	return out
}

// kept is an object of which these fields are known and others are kept.
func kept(known properties) apiextensionsv1.JSONSchemaProps {
	yes := true
	return apiextensionsv1.JSONSchemaProps{Description: "As in any Job.", Type: "object", XPreserveUnknownFields: &yes, Properties: known}
}

type properties = map[string]apiextensionsv1.JSONSchemaProps

func each(all properties, change func(apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps) properties {
	for name, s := range all {
		all[name] = change(s)
	}
	return all
}

// The API server limits the worst-case cost of a CRD's rules, so the strings that they compare need a maximum
// length.
const (
	longestName     = int64(253)
	longestQuantity = int64(64)
)

// named requires a name in a claim template: the names of the ordinals' claims begin with it.
func named(claim *apiextensionsv1.JSONSchemaProps) {
	metadata := claim.Properties["metadata"]
	name, longest, shortest := metadata.Properties["name"], longestName, int64(1)
	name.MinLength, name.MaxLength = &shortest, &longest
	metadata.Properties["name"], metadata.Required = name, []string{"name"}
	claim.Properties["metadata"], claim.Required = metadata, []string{"metadata", "spec"}
}

// silent returns the schema of a field of a claim template.
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

// lenient returns the schema of a field of a pod template.
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

// keeps lets an object keep the fields that its schema does not define.
func keeps(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	if s.Type == "object" && s.Properties != nil {
		yes := true
		s.XPreserveUnknownFields = &yes
	}
}

// below changes the schema of the items of a list or of the values of a map.
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

// fallback returns the API server's default for a missing key of a list item.
func fallback(key string) string {
	if key == "protocol" {
		return `"TCP"`
	}
	return `""`
}
