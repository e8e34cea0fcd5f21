package v1alpha1

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/json"
)

// readable is a StatefulSetSlice without UnmarshalJSON.
type readable StatefulSetSlice

// UnmarshalJSON implements json.Unmarshaler. The API server drops fields that its version of the kind does
// not know. So a field that is unknown here comes from a later release of the kind or, in the pod template,
// from a later Kubernetes (KEP-3335 on skew).
//
// A value of the spec that cannot be read is not an error, since an error would fail the whole list
// of slices and stop the controller for all the others. The value is left out, with all that may
// depend on it, and is named in Unknown: UnmarshalJSON leaves out the pod template if the value is
// there, and otherwise the spec.
func (s *StatefulSetSlice) UnmarshalJSON(raw []byte) error {
	strict, err := json.UnmarshalStrict(raw, (*readable)(s))
	s.Unknown = nil
	if err != nil {
		return s.readPartly(raw, err)
	}
	for _, e := range strict {
		quoted, found := strings.CutPrefix(e.Error(), "unknown field ")
		if path, err := strconv.Unquote(quoted); found && err == nil && strings.HasPrefix(path, "spec.") {
			s.Unknown = append(s.Unknown, path)
		}
	}
	return nil
}

// readPartly reads the readable parts of a slice that cannot be read as a whole.
func (s *StatefulSetSlice) readPartly(raw []byte, why error) error {
	var doc, spec map[string]stdjson.RawMessage
	if stdjson.Unmarshal(raw, &doc) != nil || stdjson.Unmarshal(doc["spec"], &spec) != nil {
		return why
	}
	for _, without := range []string{"spec.template", "spec"} {
		delete(spec, "template")
		doc["spec"], _ = stdjson.Marshal(spec) // no error: it was read from JSON
		if without == "spec" {
			delete(doc, "spec")
		}
		rest, err := stdjson.Marshal(doc)
		if err != nil {
			return err
		}
		*s = StatefulSetSlice{}
		if json.UnmarshalCaseSensitivePreserveInts(rest, (*readable)(s)) == nil {
			s.Unknown = []string{misread(without, why)}
			return nil
		}
	}
	return why
}

// misread names the value that cannot be read, or at least the part that contains it.
func misread(part string, why error) string {
	var wrong *stdjson.UnmarshalTypeError
	if errors.As(why, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s (%s, where %s is expected)", wrong.Field, wrong.Value, wrong.Type)
	}
	return fmt.Sprintf("%s (%v)", part, why)
}
