package schemas_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/docs/schemas"
)

// aboutFields is the part of docs/fields.md above the tables.
const aboutFields = `# Fields

Every field of the documents and kinds of this project, generated from their schemas. ` + "`[]`" + ` stands for each
element of a list, and ` + "`*`" + ` for each key of a map. [Schemas](schemas/README.md) are for editors and programs. For
a start there is [an example of a Migration](migration.yaml), and [one of an
object](orchestrator/running.md#statefulsetmigration-what-is-wanted-as-an-object).
`

// node is the part of a schema that the page shows.
type node struct {
	Ref         string          `json:"$ref"`
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Const       any             `json:"const"`
	Required    []string        `json:"required"`
	Properties  map[string]node `json:"properties"`
	Items       *node           `json:"items"`
	OneOf       []node          `json:"oneOf"`
	Values      json.RawMessage `json:"additionalProperties"` // a schema, or whether there may be others
	Defs        map[string]node `json:"$defs"`
}

// fields collects the rows of one document.
type fields struct {
	defs map[string]node
	rows strings.Builder
}

// add writes a row for each field below a node. within are the definitions that the node is in, for those that contain
// themselves.
func (f *fields) add(path string, n node, within []string) {
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		below, at, in := n.Properties[name], strings.TrimPrefix(path+"."+name, "."), within
		said := below.Description
		for {
			var values node
			switch {
			case len(below.OneOf) == 2 && below.OneOf[1].Type == "null": // a list or a map that Go may write as null
				below = below.OneOf[0]
			case below.Ref != "":
				ref := strings.TrimPrefix(below.Ref, "#/$defs/")
				below = f.defs[ref]
				if slices.Contains(in, ref) {
					below.Properties = nil
				}
				in = append(slices.Clone(in), ref)
			case below.Items != nil:
				below, at = *below.Items, at+"[]"
			case len(below.Properties) == 0 && json.Unmarshal(below.Values, &values) == nil && (values.Ref != "" || values.Type != nil):
				below, at = values, at+".*"
			default:
				values.Ref = "end"
			}
			if values.Ref == "end" {
				break
			}
		}
		f.row(at, below, said, slices.Contains(n.Required, name))
		if of := kubernetes()[at]; of == "" {
			f.add(at, below, in)
		}
	}
}

// kubernetes are the fields that are of a type of Kubernetes, which its own reference explains.
func kubernetes() map[string]string {
	return map[string]string{"spec.template": "PodTemplateSpec", "spec.volumeClaimTemplates[]": "PersistentVolumeClaim", "spec.selector": "LabelSelector"}
}

func (f *fields) row(path string, n node, said string, required bool) {
	kind := fmt.Sprint(n.Type)
	switch of := kubernetes()[path]; {
	case of != "":
		kind = of
	case len(n.Enum) > 0:
		var words []string
		for _, value := range n.Enum {
			words = append(words, fmt.Sprintf("`%v`", value))
		}
		kind = strings.Join(words, ", ")
	case n.Const != nil:
		kind = fmt.Sprintf("`%v`", n.Const)
	case n.Type == nil:
		kind = "string or integer"
	}
	if required {
		kind += ", required"
	}
	fmt.Fprintf(&f.rows, "| `%s` | %s | %s |\n", path, kind, strings.NewReplacer("\n", " ", "|", "\\|", "<", "&lt;", "*", "\\*").Replace(said))
}

// table returns the section of a document.
func table(name, of string, n node) string {
	f := fields{defs: n.Defs}
	f.add("", n, nil)
	return fmt.Sprintf("\n## %s\n\n%s\n\n| field | type | meaning |\n| --- | --- | --- |\n%s", name, of, f.rows.String())
}

// current returns the schema of a kind as it should be, also while -update has yet to write it.
func current(t *testing.T, kind string) []byte {
	t.Helper()
	if documents()[kind] != nil {
		return generated(t, kind)
	}
	return read(t, schemas.File(kind))
}

// fieldsPage returns docs/fields.md.
func fieldsPage(t *testing.T) string {
	t.Helper()
	page := aboutFields
	for _, kind := range schemas.Kinds() {
		raw := current(t, kind)
		var n node
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Fatal(err)
		}
		page += table(kind, fmt.Sprintf("Schema: [%[1]s](schemas/%[1]s).", schemas.File(kind)), n)
	}
	for _, file := range []string{"../../deploy/orchestrator/manifests.yaml", "../../deploy/chart/statefulsetslices.yaml"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(raw), "\n---\n") {
			var d struct {
				Kind string
				Spec struct {
					Group    string
					Names    struct{ Kind string }
					Versions []struct {
						Name   string
						Schema struct {
							OpenAPIV3Schema node `json:"openAPIV3Schema"`
						}
					}
				}
			}
			if err := yaml.Unmarshal([]byte(document), &d); err != nil {
				t.Fatal(err)
			}
			if d.Kind != "CustomResourceDefinition" {
				continue
			}
			for _, v := range d.Spec.Versions {
				n := v.Schema.OpenAPIV3Schema
				for _, of := range []string{"apiVersion", "kind", "metadata"} {
					delete(n.Properties, of)
				}
				page += table(d.Spec.Names.Kind, fmt.Sprintf("Kind of `%s/%s`.", d.Spec.Group, v.Name), n)
			}
		}
	}
	return page
}

func TestEveryFieldHasAMeaning(t *testing.T) {
	heading := ""
	for line := range strings.Lines(fieldsPage(t)) {
		if name, is := strings.CutPrefix(line, "## "); is {
			heading = strings.TrimSpace(name)
		}
		cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), "|")
		if strings.HasPrefix(line, "| `") && strings.TrimSpace(cells[3]) == "" {
			t.Errorf("the field %s of %s has no meaning: write it above the field of the Go type, or into the description of the schema", strings.TrimSpace(cells[1]), heading)
		}
	}
}

func TestThePageOfFieldsIsMadeOfTheSchemas(t *testing.T) {
	const file = "../fields.md"
	want := fieldsPage(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != want {
		t.Errorf("docs/fields.md is not as generated (%v): go test ./docs/schemas -update", err)
	}
	for _, heading := range []string{"Migration", "Plan", "Journal", "Report", "PlanStatus", "Event", "Notification", "StatefulSetMigration", "StatefulSetSlice"} {
		if !strings.Contains(want, "\n## "+heading+"\n") {
			t.Errorf("docs/fields.md does not have %s", heading)
		}
	}
}
