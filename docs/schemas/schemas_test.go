package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/docs/schemas"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/report"
	"github.com/stsmigrate/stsmigrate/internal/view/event"
	"github.com/stsmigrate/stsmigrate/orchestrator/notify"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

var update = flag.Bool("update", false, "write the schemas anew") //nolint:gochecknoglobals // a flag of the test

func TestTheSchemasAreMadeOfTheTypes(t *testing.T) {
	if len(documents())+len(messages()) != len(schemas.Kinds()) {
		t.Errorf("%d types for %v", len(documents())+len(messages()), schemas.Kinds())
	}
	for _, kind := range slices.Sorted(maps.Keys(documents())) {
		want := generated(t, kind)
		if *update {
			if err := os.WriteFile(schemas.File(kind), want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(schemas.File(kind)); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not as generated (%v): go test ./docs/schemas -update", schemas.File(kind), err)
		}
	}
}

// messages returns the Go type of each kind whose schema is written by hand.
func messages() map[string]any {
	return map[string]any{"Event": event.Event{}, "Notification": notify.Event{}}
}

// The schemas that are written by hand have each field of the type, and no other.
func TestTheSchemasOfMessagesHaveTheFieldsOfTheTypes(t *testing.T) {
	for kind, of := range messages() {
		var n node
		if err := json.Unmarshal(read(t, schemas.File(kind)), &n); err != nil {
			t.Fatal(err)
		}
		sameFields(t, kind, n, n.Defs, reflect.TypeOf(of))
	}
}

func sameFields(t *testing.T, path string, n node, defs map[string]node, of reflect.Type) {
	t.Helper()
	if below, is := defs[strings.TrimPrefix(n.Ref, "#/$defs/")]; is {
		n = below
	}
	of = pointed(of)
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
		return
	}
	var want []string
	for _, f := range reflect.VisibleFields(of) {
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, name)
		sameFields(t, path+"."+name, n.Properties[name], defs, f.Type)
	}
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(n.Properties)); !slices.Equal(have, want) {
		t.Errorf("%s has the fields %v, expected %v", path, have, want)
	}
}

// A program that reads a message of a newer release must not refuse it.
func TestANewerReleaseMaySayMore(t *testing.T) {
	for kind, message := range map[string]string{
		"Event": `{"apiVersion": "stsmigrate.dev/v1alpha1", "kind": "Event", "type": "Newer", "time": "2026-01-02T12:00:00Z", "plan": "web",
			"message": "x", "more": 1, "step": {"op": "Grow", "more": 1}, "spans": {"more": 1}}`,
		"Notification": `{"specversion": "1.0", "id": "187523806d3a85c0bc0641b13fae107d", "source": "/clusters/c/namespaces/n/statefulsetmigrations",
			"type": "dev.stsmigrate.plan.newer", "subject": "web", "time": "2026-01-02T12:00:00Z", "datacontenttype": "application/json", "sequence": "0000000004",
			"more": 1, "data": {"plan": "web", "namespace": "n", "state": "Newer", "change": "newer", "more": 1,
			"source": {"cluster": "c", "namespace": "n", "name": "web", "more": 1}}}`,
	} {
		if err := valid(t, kind, []byte(message)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestASchemaIsFoundInAnyCase(t *testing.T) {
	if raw, err := schemas.Of("planstatus"); err != nil || !json.Valid(raw) {
		t.Errorf("%v", err)
	}
	if _, err := schemas.Of("Pod"); err == nil || !strings.Contains(err.Error(), "expected one of Migration, Plan") {
		t.Errorf("%v", err)
	}
}

// valid returns what the schema of a kind refuses in a document, as YAML or JSON.
func valid(t *testing.T, kind string, document []byte) error {
	t.Helper()
	raw, err := schemas.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := validator.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(schemas.File(kind), schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(schemas.File(kind))
	if err != nil {
		t.Fatalf("%s is no schema: %v", schemas.File(kind), err)
	}
	if document, err = yaml.YAMLToJSON(document); err != nil {
		t.Fatal(err)
	}
	value, err := validator.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// What the program reads and writes is what the schemas describe.
func TestDocumentsAreAsTheirSchemasSay(t *testing.T) {
	const records = "../../plans/journal/testdata/"
	p, err := plans.DecodePlan(read(t, records+"plan-v1alpha1.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Decode(read(t, records+"journal-v1alpha1.json"), p)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	told := journal.Timeline{}
	told.Record(now, journal.Event{Kind: journal.PlanBlocked, By: "anna", What: "why"})
	for name, d := range map[string]struct {
		kind string
		text []byte
	}{
		"the Migration of the docs": {"Migration", read(t, "../migration.yaml")},
		"a Plan":                    {"Plan", read(t, records+"plan-v1alpha1.yaml")},
		"a Plan, written anew":      {"Plan", encoded(t, p)},
		"a Journal":                 {"Journal", read(t, records+"journal-v1alpha1.json")},
		"a Journal, written anew":   {"Journal", encoded(t, j)},
		"a new Journal":             {"Journal", encoded(t, journal.New(p))},
		"an empty Report":           {"Report", encoded(t, report.New(p, journal.New(p), journal.Timeline{}, nil, true, now))},
		"a Report":                  {"Report", encoded(t, report.New(p, j, told, errors.New("lost"), true, now))},
		"a PlanStatus": {"PlanStatus", encoded(t, engine.View{
			APIVersion: plans.APIVersion, Kind: "PlanStatus", Plan: p.Name, Source: p.Source, Destination: p.Destination, Timeline: told,
			Ordinals: []engine.OrdinalView{{Ordinal: 1, Source: "-", Destination: "Ready", Phase: "moved"}},
		})},
	} {
		if err := valid(t, d.kind, d.text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An editor marks the mistakes that the program would refuse.
func TestMistakesOfAMigrationAreFound(t *testing.T) {
	const head = "apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec:\n  source: {name: web}\n"
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"the least":                {head, true},
		"an unknown field":         {head + "  maxUnavailible: 1\n", false},
		"another version":          {strings.Replace(head, "v1alpha1", "v9", 1), false},
		"no set":                   {strings.Replace(head, "name: web", "namespace: shop", 1), false},
		"a word that is no mode":   {head + "  names: dns\n", false},
		"a gate":                   {head + "  gates: [{name: a, when: AfterGrow, timeout: 5m, httpGet: {path: /, port: 80}}]\n", true},
		"a gate that asks nothing": {head + "  gates: [{name: a, when: AfterGrow}]\n", false},
		"a patch that is two":      {head + "  destination: {patches: [{path: a, patch: b}]}\n", false},
	} {
		if err := valid(t, "Migration", []byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := plans.DecodeMigration([]byte(c.text)); (err == nil) != c.ok && name != "a word that is no mode" {
			t.Errorf("%s: the program and the schema differ: %v", name, err)
		}
	}
	if !slices.Contains(schemas.Kinds(), plans.MigrationKind) {
		t.Error("a Migration has no schema")
	}
}
