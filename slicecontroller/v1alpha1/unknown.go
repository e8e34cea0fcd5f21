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

// UnmarshalJSON implements json.Unmarshaler. The API server drops what its kind does not
// know, so that fields which are unknown here are of a later release of the kind, or of a
// later Kubernetes in the pod template (KEP-3335 on skew).
//
// A value of the spec that cannot be read is no error, since an error is one of the whole list that the slice is in, and
// would stop the controller for all others. It is left out, with all that may depend on it, and named in Unknown: the pod
// template where that is at fault, and else the spec.
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

// readPartly reads what can be read of a slice that cannot be read as a whole.
func (s *StatefulSetSlice) readPartly(raw []byte, why error) error {
	var doc, spec map[string]stdjson.RawMessage
	if stdjson.Unmarshal(raw, &doc) != nil || stdjson.Unmarshal(doc["spec"], &spec) != nil {
		return why
	}
	for _, without := range []string{"spec.template", "spec"} {
		delete(spec, "template")
		doc["spec"], _ = stdjson.Marshal(spec) // which was read from JSON
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

// misread names the value that cannot be read, and at least what it is part of.
func misread(part string, why error) string {
	var wrong *stdjson.UnmarshalTypeError
	if errors.As(why, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s (%s, where %s is expected)", wrong.Field, wrong.Value, wrong.Type)
	}
	return fmt.Sprintf("%s (%v)", part, why)
}
