package v1alpha1

import (
	"encoding/json"
	"slices"
	"testing"
)

// What this release does not know is named (3335-42); what it knows is read as ever.
func TestUnknownFieldsAreNamed(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"metadata":{"name":"web"},"spec":{"replicas":2}}`: nil,
		`{"metadata":{"name":"web"},"spec":{"replicas":2,"later":true,"template":{"spec":{"containers":[{"name":"a","later":1}]}}},"status":{"later":1}}`: {"spec.later", "spec.template.spec.containers[0].later"},
	} {
		s := StatefulSetSlice{Unknown: []string{"spec.before"}}
		if err := json.Unmarshal([]byte(raw), &s); err != nil || !slices.Equal(s.Unknown, want) || s.Name != "web" || *s.Spec.Replicas != 2 {
			t.Errorf("%s: %v, %+v", raw, err, s)
		}
	}
	var list StatefulSetSliceList
	if err := json.Unmarshal([]byte(`{"items":[{"spec":{}},{"spec":{"later":{}}}]}`), &list); err != nil || len(list.Items[0].Unknown) != 0 || !slices.Equal(list.Items[1].Unknown, []string{"spec.later"}) {
		t.Errorf("%v, %+v", err, list)
	}
	if err := json.Unmarshal([]byte(`{"spec":{"replicas":"two"}}`), &StatefulSetSlice{}); err == nil {
		t.Error("it was read")
	}
}
