package plans

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fields returns the values of an object by their paths, such as template.spec.containers[0].image. Each is one line.
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
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			flatten(out, strings.TrimPrefix(path+"."+name, "."), field)
		}
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
