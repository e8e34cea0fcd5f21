package bundle

import (
	"strings"
	"testing"
)

// planted is a part of every value that must not be in an archive.
const planted = "hunter2"

// redacted returns a document as it is in an archive.
func redacted(t *testing.T, v any) string {
	t.Helper()
	raw, err := NewRedactor().Redact(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A patch may name what it changes in a path, so that no field beside the value tells what it is.
func TestTheValuesOfAPatchAreLeftOut(t *testing.T) {
	for name, patch := range map[string]string{
		"one value":        "- op: replace\n  path: /spec/template/spec/containers/0/env/0/value\n  value: hunter2",
		"a variable":       "- op: add\n  path: /spec/template/spec/containers/0/env/-\n  value: {name: DB, value: hunter2}",
		"arguments":        "- op: add\n  path: /spec/template/spec/containers/0/args\n  value: [--pass, hunter2]",
		"one argument":     `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "hunter2"}]`,
		"a test":           `[{"op": "test", "path": "/spec/template/spec/containers/0/command/2", "value": "hunter2"}]`,
		"other letters":    `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "Value": "hunter2"}]`,
		"no operation":     `["hunter2"]`,
		"a merge":          "spec: {template: {spec: {containers: [{name: a, env: [{name: A, value: hunter2}], args: [hunter2]}]}}}",
		"a merge of notes": "spec: {template: {metadata: {annotations: {example.com/key: hunter2}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			got := redacted(t, map[string]any{"patches": []any{map[string]any{"patch": patch}}})
			if strings.Contains(got, planted) {
				t.Error(got)
			}
			if strings.Contains(patch, "path") && !strings.Contains(got, "containers/0/") {
				t.Errorf("where the patch changes something is lost: %s", got)
			}
		})
	}
}
