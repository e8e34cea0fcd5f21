package v1alpha1

import (
	"strconv"
	"strings"

	"sigs.k8s.io/json"
)

// UnmarshalJSON implements json.Unmarshaler. The API server drops what its kind does not
// know, so that fields which are unknown here are of a later release of the kind, or of a
// later Kubernetes in the pod template (KEP-3335 on skew).
func (s *StatefulSetSlice) UnmarshalJSON(raw []byte) error {
	type plain StatefulSetSlice // without this function
	strict, err := json.UnmarshalStrict(raw, (*plain)(s))
	s.Unknown = nil
	for _, e := range strict {
		quoted, found := strings.CutPrefix(e.Error(), "unknown field ")
		if path, err := strconv.Unquote(quoted); found && err == nil && strings.HasPrefix(path, "spec.") {
			s.Unknown = append(s.Unknown, path)
		}
	}
	return err
}
