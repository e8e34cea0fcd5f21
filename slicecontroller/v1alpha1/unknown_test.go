package v1alpha1

import (
	"encoding/json"
	"slices"
	"testing"
)

// Fields that this release does not know are listed (3335-42). Known fields are read as usual.
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
}

// A slice with a mistyped value in its pod template is read with the others of a list,
// without that template, and the wrong value is named. A slice whose other fields cannot be
// read has only metadata and status.
func TestASliceThatCannotBeReadStopsNoOther(t *testing.T) {
	const good = `{"metadata":{"name":"good"},"spec":{"replicas":2}}`
	for spec, want := range map[string]struct {
		unknown  string
		replicas int32
	}{
		`"replicas":3,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"web","env":[{"name":"PORT","value":8080}]}]}}`: {
			"spec.template.spec.containers.env.value (number, where string is expected)", 3,
		},
		`"replicas":3,"template":{"metadata":{"labels":{"version":2}}}`: {"spec.template.metadata.labels (number, where string is expected)", 3},
		`"replicas":3,"template":{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"500 m"}}}]}}`: {
			"spec.template (quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$')", 3,
		},
		`"replicas":"two"`: {"spec.replicas (string, where int32 is expected)", 0},
	} {
		list := StatefulSetSliceList{Items: []StatefulSetSlice{{}, {Spec: StatefulSetSliceSpec{ServiceName: "before"}}}}
		raw := `{"items":[` + good + `,{"metadata":{"name":"bad"},"spec":{` + spec + `},"status":{"replicas":1}}]}`
		if err := json.Unmarshal([]byte(raw), &list); err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if s := list.Items[0]; s.Name != "good" || len(s.Unknown) != 0 || *s.Spec.Replicas != 2 {
			t.Errorf("beside %s: %+v", spec, s)
		}
		s := list.Items[1]
		if s.Name != "bad" || s.Status.Replicas != 1 || !slices.Equal(s.Unknown, []string{want.unknown}) {
			t.Errorf("%s: %q, %+v", spec, s.Unknown, s)
		}
		if s.Spec.Template.Labels != nil || s.Spec.Template.Spec.Containers != nil || s.Spec.ServiceName != "" {
			t.Errorf("%s: something of what cannot be read is left: %+v", spec, s.Spec)
		}
		if n := s.Spec.Replicas; (n != nil) != (want.replicas != 0) || n != nil && *n != want.replicas {
			t.Errorf("%s: replicas %v", spec, n)
		}
	}
}
