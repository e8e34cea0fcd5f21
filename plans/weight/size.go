package weight

import "reflect"

// Of returns how many bytes of memory a decoded value keeps, with all that it points to, and without what maps need beside
// their entries. It is for what is kept after it was decoded: a weight is more, since it is not known yet what it becomes.
func Of(v any) int64 {
	at := reflect.ValueOf(v)
	if !at.IsValid() {
		return 0
	}
	return int64(at.Type().Size()) + beyond(at) //nolint:gosec // a size
}

// beyond returns what a value keeps outside of itself.
func beyond(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = int64(v.Elem().Type().Size()) + beyond(v.Elem()) //nolint:gosec // a size
		}
	case reflect.String:
		n = int64(v.Len())
	case reflect.Slice:
		n = int64(v.Cap()) * int64(v.Type().Elem().Size()) //nolint:gosec // a size
		if !plain(v.Type().Elem().Kind()) {
			for k := range v.Len() {
				n += beyond(v.Index(k))
			}
		}
	case reflect.Array:
		for k := 0; k < v.Len() && !plain(v.Type().Elem().Kind()); k++ {
			n += beyond(v.Index(k))
		}
	case reflect.Map:
		each := int64(v.Type().Key().Size() + v.Type().Elem().Size()) //nolint:gosec // a size
		for all := v.MapRange(); all.Next(); {
			n += each + beyond(all.Key()) + beyond(all.Value())
		}
	case reflect.Struct:
		for k := range v.NumField() {
			n += beyond(v.Field(k))
		}
	default: // it points to nothing
	}
	return n
}

// plain reports whether values of a kind point to nothing.
func plain(k reflect.Kind) bool { return k < reflect.Complex64 && k != reflect.Invalid }
