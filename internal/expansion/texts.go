package expansion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Text is one text of a pod, and where it is.
type Text struct{ Path, Is string }

// Texts returns every text of a pod's labels, annotations and spec, by the path that it has in the template of a set.
func Texts(pod *corev1.Pod) ([]Text, error) {
	raw, err := json.Marshal(Bare(pod))
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	var out []Text
	walk("", tree, func(path, is string) { out = append(out, Text{strings.TrimPrefix(path, "."), is}) })
	return out, nil
}

// Bare returns the part of a pod that its template decides on.
func Bare(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{Spec: pod.Spec}
	out.Labels, out.Annotations = pod.Labels, pod.Annotations
	return out
}

func walk(path string, v any, visit func(path, is string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			step := "." + k
			if strings.ContainsAny(k, "./") {
				step = "[" + k + "]"
			}
			walk(path+step, v[k], visit)
		}
	case []any:
		for n, e := range v {
			walk(path+"["+called(e, n)+"]", e, visit)
		}
	}
}

// called returns the word by which an entry of a list is known.
func called(entry any, n int) string {
	m, _ := entry.(map[string]any)
	for _, key := range []string{"mountPath", "name", "path", "ip"} { // a volume may be mounted twice
		if s, ok := m[key].(string); ok {
			return s
		}
	}
	return fmt.Sprint(n)
}
