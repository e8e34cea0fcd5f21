package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Changes lists the fields in which the destination's set differs from the source's, one line of
// "field: old -> new" for each.
func Changes(source, destined *appsv1.StatefulSet) ([]string, error) {
	found, err := Differences(bare(source, destined.Namespace), destined)
	var out []string
	for _, d := range found {
		out = append(out, d.Path+": "+d.Before+" -> "+d.After)
	}
	return out, err
}

// Difference is a field that two objects have with different values.
type Difference struct{ Path, Before, After string }

// Differences lists the fields in which two objects of one type differ.
func Differences(before, after any) ([]Difference, error) {
	var forms [2]map[string]any
	for i, o := range []any{before, after} {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &forms[i]); err != nil {
			return nil, err
		}
	}
	return differences("", forms[0], forms[1]), nil
}

// Misstated returns the reason why the plan does not describe correctly what its patches do to the
// set, or "". Changes is the text that the user read before the approval. It stands in the plan
// beside the patches.
func Misstated(p *plans.Plan, source *appsv1.StatefulSet) (string, error) {
	destined, err := DestinationSet(source, p)
	if err != nil {
		return "", err
	}
	now, err := Changes(source, destined)
	if err != nil || slices.Equal(now, p.Changes) {
		return "", err
	}
	listed := func(changes []string) string {
		if len(changes) == 0 {
			return "nothing"
		}
		return strings.Join(changes, ", ")
	}
	return fmt.Sprintf("it records that its patches change %s, but they change %s", listed(p.Changes), listed(now)), nil
}

// differences compares two JSON values at one path.
func differences(path string, before, after any) []Difference {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	was, is, fields := members(before, after)
	if !fields {
		return []Difference{{strings.TrimPrefix(path, "."), text(before), text(after)}}
	}
	var out []Difference
	for _, k := range slices.Sorted(maps.Keys(union(was, is))) {
		out = append(out, differences(path+k, was[k], is[k])...)
	}
	return out
}

// members returns the parts of two maps, or of two lists of named entries, by the path step that
// leads to each; ok is false for values that are compared as a whole.
func members(before, after any) (was, is map[string]any, ok bool) {
	was, one := plans.Members(before)
	is, two := plans.Members(after)
	// A new value is reported part by part, a removed one in one line.
	return was, is, two && (one || before == nil && len(is) > 0)
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

// text returns a value in one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "(none)"
	case string:
		if v != "" && !strings.ContainsAny(v, "\n\r\t") {
			return v
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
