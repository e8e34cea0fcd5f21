package plans

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer returns the manager that last wrote a field, from the object's managedFields, so that the
// user knows whom to ask. path is the field's path, such as spec, replicas.
func Writer(o metav1.Object, path ...string) string {
	var last *metav1.ManagedFieldsEntry
	for i, e := range o.GetManagedFields() {
		if e.FieldsV1 == nil || !Owns(e.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if last == nil || e.Time != nil && last.Time != nil && last.Time.Before(e.Time) {
			last = &o.GetManagedFields()[i]
		}
	}
	if last == nil {
		return "an unknown client"
	}
	out := last.Manager + " (" + string(last.Operation)
	if last.Subresource != "" {
		out += " of " + last.Subresource
	}
	if last.Time != nil {
		out += ", " + last.Time.UTC().Format("15:04:05 MST")
	}
	return out + ")"
}

// Owns reports whether a manager owns a field, by its entry of managedFields.
func Owns(raw []byte, path []string) bool {
	var fields map[string]json.RawMessage
	for _, p := range path {
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		next, ok := fields["f:"+p]
		if !ok {
			return false
		}
		raw, fields = next, nil
	}
	return true
}
