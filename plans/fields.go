package plans

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fields returns the values of an object by their paths, such as template.spec.containers[web].image. Each is one line.
func Fields(v any) (map[string]string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var generic any
	if err := json.Unmarshal(raw, &generic); err != nil {
		return nil, err
	}
	out := map[string]string{}
	flatten(out, "", generic)
	return out, nil
}

func flatten(out map[string]string, path string, v any) {
	if members, ok := Members(v); ok {
		for step, inner := range members {
			flatten(out, strings.TrimPrefix(path+step, "."), inner)
		}
		return
	}
	switch v := v.(type) {
	case []any:
		for k, item := range v {
			flatten(out, path+"["+strconv.Itoa(k)+"]", item)
		}
	case float64:
		out[path] = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		out[path] = Line(fmt.Sprint(v))
	}
}

// Members returns the parts of a map, or of a list whose entries have names of their own, by the step of the path that
// leads to each, such as .image or [web]. It is false for any other value: where an entry of a list stands says nothing
// about which one it is.
func Members(v any) (map[string]any, bool) {
	out := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if strings.ContainsAny(k, "./") {
				k = "[" + k + "]"
			} else {
				k = "." + k
			}
			out[k] = inner
		}
		return out, true
	case []any:
		for _, entry := range v {
			name := nameOf(entry)
			if name == "" {
				return nil, false
			}
			out["["+name+"]"] = entry
		}
		return out, len(out) == len(v) && len(v) > 0
	}
	return nil, false
}

func nameOf(entry any) string {
	m, _ := entry.(map[string]any)
	if meta, ok := m["metadata"].(map[string]any); ok {
		m = meta
	}
	name, _ := m["name"].(string)
	return name
}

// FieldsChanged says which fields have another value now, as PATH OLD -> NEW, in the order of their paths. Of the value of
// an environment variable only the path is said: it may be a password.
func FieldsChanged(was, is map[string]string) (out []string) {
	all := map[string]string{}
	maps.Copy(all, was)
	maps.Copy(all, is)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		before, had := was[path]
		now, has := is[path]
		switch {
		case had == has && before == now:
		case strings.HasSuffix(path, ".value") && strings.Contains(path, ".env["):
			out = append(out, path+" (its value is not shown)")
		case !had:
			out = append(out, fmt.Sprintf("%s (none) -> %s", path, now))
		case !has:
			out = append(out, fmt.Sprintf("%s %s -> (none)", path, before))
		default:
			out = append(out, fmt.Sprintf("%s %s -> %s", path, before, now))
		}
	}
	return out
}
