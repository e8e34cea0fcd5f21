package deploy

import (
	"slices"
	"strings"
	"testing"
)

// A slice controller that is limited to some namespaces needs no cluster-scoped object, and no rights
// elsewhere.
func TestTheNamespacedSliceControllerNeedsNoClusterRights(t *testing.T) {
	of := func(more map[string]any) map[string]any {
		slice := map[string]any{"enabled": true, "namespaces": []any{"a", "b"}}
		for k, v := range more {
			slice[k] = v
		}
		return map[string]any{"slicecontroller": slice, "orchestrator": map[string]any{"enabled": false}, "account": map[string]any{"create": false}}
	}
	raw, err := Render("moves", "", of(nil))
	if err != nil {
		t.Fatal(err)
	}
	var bound []string
	for _, o := range decode(t, raw) {
		if o.GetNamespace() == "" {
			t.Errorf("%s %s is in no namespace", o.GetKind(), o.GetName())
		}
		if o.GetKind() == "RoleBinding" && o.GetNamespace() != "moves" {
			bound = append(bound, o.GetNamespace())
		}
	}
	if !slices.Equal(bound, []string{"a", "b"}) || !strings.Contains(string(raw), "--namespaces=a,b") {
		t.Errorf("rights in %q, and\n%s", bound, raw)
	}
	for _, more := range []map[string]any{{"manage": "apps/v1"}, {"webhook": map[string]any{"enabled": true}}, {"namespaces": []any{"A b"}}} {
		if out, err := Render("moves", "", of(more)); err == nil {
			t.Errorf("%v: rendered\n%s", more, out)
		}
	}
}
