package schemas_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/docs/schemas"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/report"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

const (
	module = "github.com/stsmigrate/stsmigrate"
	// published is where the files are found on the web.
	published = "https://raw.githubusercontent.com/stsmigrate/stsmigrate/main/docs/schemas/"
)

// documents returns the Go type of every kind.
func documents() map[string]any {
	return map[string]any{
		"Migration": plans.Migration{}, "Plan": plans.Plan{}, "Journal": journal.Journal{},
		"Report": report.Report{}, "PlanStatus": engine.View{},
	}
}

// generated returns the schema of a kind, made of its Go type and the comments on it.
func generated(t *testing.T, kind string) []byte {
	t.Helper()
	// What a user writes has no unknown fields; what a newer release writes may have.
	written := kind == "Migration"
	r := &jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, AllowAdditionalProperties: !written,
		Namer: qualified,
	}
	words := map[string][]any{}
	for _, room := range []string{"plans", "internal/report", "internal/engine", "internal/reasons"} {
		if err := r.AddGoComments(module+"/docs/schemas", "../../"+room, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	for _, room := range []string{"plans", "plans/journal", "internal/engine"} {
		constants(t, room, words)
	}
	for name, text := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(text), " ")
	}
	r.LookupComment = func(of reflect.Type, field string) string { return meaning(of, field, r.CommentMap) }
	r.Mapper = func(of reflect.Type) *jsonschema.Schema { return foreign(of, words, written) }
	of := reflect.TypeOf(documents()[kind])
	s := r.ReflectFromType(of)
	s.ID, s.Title = jsonschema.ID(published+schemas.File(kind)), kind
	s.Properties.Set("kind", &jsonschema.Schema{Const: kind, Description: "kind is the kind of the document."})
	s.Properties.Set("apiVersion", &jsonschema.Schema{Const: plans.APIVersion, Description: "apiVersion is the version of the document. A reader refuses a version that it does not know."})
	if written {
		asWritten(s)
	} else {
		withNull(s, s.Definitions, of, map[reflect.Type]bool{})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// meaning returns what the comment on a field says, with the name that the field has in a document; of a type of
// Kubernetes what its own reference says.
func meaning(of reflect.Type, field string, comments map[string]string) string {
	if of.Kind() != reflect.Struct || field == "" {
		return ""
	}
	f, _ := of.FieldByName(field)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if said := differently()[of.Name()+"."+name]; said != "" {
		return said
	}
	said := comments[of.PkgPath()+"."+of.Name()+"."+field]
	if documented, is := reflect.New(of).Interface().(interface{ SwaggerDoc() map[string]string }); is {
		said = strings.Join(strings.Fields(documented.SwaggerDoc()[name]), " ")
	}
	if rest, begins := strings.CutPrefix(said, field); begins && strings.IndexAny(rest, " ,") == 0 {
		return name + rest
	}
	return said
}

// differently has the meaning of fields that are of a type of Kubernetes and mean something else here.
func differently() map[string]string {
	return map[string]string{
		"HTTPGetAction.host":     "host must be left out. The request goes to the pod that the gate asks.",
		"HTTPGetAction.protocol": "protocol must be left out. The API server chooses it.",
	}
}

// qualified returns the name of a type with its package, since two packages may have types of one name.
func qualified(of reflect.Type) string {
	if of.Name() == "" {
		return ""
	}
	return of.String()
}

// constants adds the values of the string types of a package, by the type.
func constants(t *testing.T, room string, words map[string][]any) {
	t.Helper()
	files, err := filepath.Glob("../../" + room + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", room, err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || strings.HasSuffix(file, "_test.go") {
				return true
			}
			of, named := v.Type.(*ast.Ident)
			value, literal := v.Values[0].(*ast.BasicLit)
			if named && literal && value.Kind == token.STRING {
				if word, err := strconv.Unquote(value.Value); err == nil {
					name := module + "/" + room + "." + of.Name
					words[name] = append(words[name], word)
				}
			}
			return true
		})
	}
}

// foreign returns the schema of a type whose JSON form is not that of its fields, or that has few values; else nil.
func foreign(of reflect.Type, words map[string][]any, written bool) *jsonschema.Schema {
	switch of {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[metav1.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case reflect.TypeFor[intstr.IntOrString]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "string"}}}
	case reflect.TypeFor[batchv1.JobSpec](): // Kubernetes describes it
		return &jsonschema.Schema{Type: "object"}
	}
	known := words[of.PkgPath()+"."+of.Name()]
	switch {
	case of.Kind() != reflect.String || len(known) == 0:
		return nil
	case written:
		return &jsonschema.Schema{Type: "string", Enum: known}
	}
	return &jsonschema.Schema{Type: "string", Examples: known} // a newer release may have more
}

// asWritten makes a schema of what a user must write: the rest has defaults.
func asWritten(s *jsonschema.Schema) {
	s.Required = []string{"apiVersion", "kind", "spec"}
	s.Definitions["plans.Spec"].Required = []string{"source"}
	one := func(names ...string) (out []*jsonschema.Schema) {
		for _, name := range names {
			out = append(out, &jsonschema.Schema{Required: []string{name}})
		}
		return out
	}
	s.Definitions["plans.Gate"].OneOf = one("exec", "httpGet", "job")
	s.Definitions["plans.Patch"].OneOf = one("path", "patch")
	source := *s.Definitions["plans.Place"]
	source.Required = []string{"name"}
	s.Definitions["plans.Place"] = &source
}

// withNull allows null where Go writes it: for a list, a map or a pointer that is empty and not left out.
func withNull(s *jsonschema.Schema, all jsonschema.Definitions, of reflect.Type, seen map[reflect.Type]bool) {
	of = pointed(of)
	if of.Kind() != reflect.Struct || seen[of] || s == nil || !strings.HasPrefix(of.PkgPath(), module) {
		return
	}
	seen[of] = true
	for _, f := range reflect.VisibleFields(of) {
		below := pointed(f.Type)
		withNull(all[below.String()], all, below, seen)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		was, has := s.Properties.Get(name)
		if !has || f.Type == below || strings.Contains(options, "omit") {
			continue
		}
		about := was.Description
		was.Description = ""
		s.Properties.Set(name, &jsonschema.Schema{Description: about, OneOf: []*jsonschema.Schema{was, {Type: "null"}}})
	}
}

// pointed returns the type that a pointer, a list or a map leads to; a type that is none of them as it is.
func pointed(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	return of
}
