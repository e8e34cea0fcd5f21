package writes

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// carried returns raw with the change from known to next. Everything in raw that is not known stays as it is.
func carried(raw, known, next any) any {
	if reflect.DeepEqual(known, next) {
		return raw
	}
	switch n := next.(type) {
	case map[string]any:
		r, rok := raw.(map[string]any)
		k, kok := known.(map[string]any)
		if rok && kok {
			return carriedFields(r, k, n)
		}
	case []any:
		r, rok := raw.([]any)
		k, kok := known.([]any)
		if rok && kok && len(r) == len(k) {
			return carriedItems(r, k, n)
		}
	}
	return next
}

func carriedFields(raw, known, next map[string]any) map[string]any {
	out := map[string]any{}
	for field, v := range raw {
		if _, ok := known[field]; !ok {
			out[field] = v
		}
	}
	for field, v := range next {
		out[field] = v
		if k, ok := known[field]; ok {
			out[field] = carried(raw[field], k, v)
		}
	}
	return out
}

func carriedItems(raw, known, next []any) []any {
	out := slices.Clone(next)
	for i, v := range next {
		if k := counterpart(known, next, i); k >= 0 {
			out[i] = carried(raw[k], known[k], v)
		}
	}
	return out
}

// counterpart returns the index of the item in known from which item i of next was made, or -1. Items
// with a name are matched by name.
func counterpart(known, next []any, i int) int {
	if name := nameOf(next[i]); name != nil {
		return slices.IndexFunc(known, func(v any) bool { return nameOf(v) == name })
	}
	if len(known) == len(next) {
		return i
	}
	return slices.IndexFunc(known, func(v any) bool { return reflect.DeepEqual(v, next[i]) })
}

// nameOf returns the name of a container, a port, a variable or an object, or nil.
func nameOf(item any) any {
	fields, _ := item.(map[string]any)
	if meta, ok := fields["metadata"].(map[string]any); ok {
		fields = meta
	}
	name, _ := fields["name"].(string)
	if name == "" {
		return nil
	}
	return name
}

// unknown lists the paths of the fields that are in raw and not in known, sorted. A null counts as absent.
func unknown(raw, known any, path string) (out []string) {
	switch r := raw.(type) {
	case map[string]any:
		k, _ := known.(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(r)) {
			at := field
			if path != "" {
				at = path + "." + field
			}
			if v, ok := k[field]; ok {
				out = append(out, unknown(r[field], v, at)...)
			} else if r[field] != nil {
				out = append(out, at)
			}
		}
	case []any:
		k, _ := known.([]any)
		for i := range min(len(r), len(k)) {
			out = append(out, unknown(r[i], k[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return out
}
