package plans

import (
	"bytes"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Writer returns the manager that last wrote a field, from the object's managedFields, so that the
// user knows whom to ask. path is the field's path, such as spec, replicas.
func Writer(o metav1.Object, path ...string) string {
	last := lastWriter(o, path)
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

// Changer returns who has given a field a value that this program never sends: the last writer, or the admission of the
// cluster where that writer is this program.
func Changer(o metav1.Object, path ...string) string {
	if strings.HasPrefix(Manager(o, path...), "stsmigrate") {
		return "the admission of its cluster, such as a mutating webhook or policy, in a write of this program"
	}
	return Writer(o, path...)
}

// Manager returns only the name of that manager, which is what a client says of itself; "" if none is known.
func Manager(o metav1.Object, path ...string) string {
	if last := lastWriter(o, path); last != nil {
		return last.Manager
	}
	return ""
}

// Written returns the name of that manager, and when it has written last; "" if none is known.
func Written(o metav1.Object, path ...string) (manager string, at time.Time) {
	last := lastWriter(o, path)
	if last == nil {
		return "", at
	}
	if last.Time != nil {
		at = last.Time.UTC()
	}
	return last.Manager, at
}

func lastWriter(o metav1.Object, path []string) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i, e := range o.GetManagedFields() {
		if e.FieldsV1 == nil || !Owns(e.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if last == nil || e.Time != nil && last.Time != nil && last.Time.Before(e.Time) {
			last = &o.GetManagedFields()[i]
		}
	}
	return last
}

// Owns reports whether a manager owns a field or a part of it, by its entry of managedFields.
func Owns(raw []byte, path []string) bool {
	fields := &fieldpath.Set{}
	if len(path) == 0 || fields.FromJSON(bytes.NewReader(raw)) != nil {
		return false
	}
	for k, name := range path {
		at := fieldpath.PathElement{FieldName: &name}
		if k == len(path)-1 && fields.Members.Has(at) {
			return true
		}
		fields = fields.WithPrefix(at)
	}
	return !fields.Empty()
}
