package simulation

import (
	"reflect"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// This file makes what an engine remembers a part of the states of an exploration. All processes share one engine there. Before
// one of them acts, the engine is given the memory of that process and the clients of the state, and afterwards its memory is
// kept. That is every field of the engine and of the values beside it, as reflection finds them, so that one that is added is
// in it too. A write that a look has prepared stays valid: it goes through the clients of the engine.
//
// Not in it: what its clients keep (clusters.Recent), as no watch is behind here, and what needs a clock.

// mind is the engine of an exploration.
type mind struct {
	engine *engine.Engine
	ports  map[plans.Side]*port
	places []reflect.Value // the structs that it consists of
	fresh  *memory
	// woken is the memory that it was last given, and given where the writes are that were prepared in it.
	woken *memory
	given map[string]uintptr
}

// port is a client that serves one process after another.
type port struct{ *conn }

// newMind returns the engine of a world. It remembers nothing.
func newMind(w *world) *mind {
	m := &mind{ports: map[plans.Side]*port{}}
	on := clusters.Clusters{}
	for side := range w.on {
		m.ports[side] = &port{}
		on[side] = m.ports[side]
	}
	m.engine = engine.New(w.plan, records.NewStore(m.ports[plans.Destination], green, planName), on)
	m.engine.Beside = func(one func()) func() { one(); return func() {} }
	m.engine.Without(w.options.Without...)
	m.find(reflect.ValueOf(m.engine), map[spot]bool{})
	m.woken = &memory{}
	m.fresh = m.keep(w)
	return m
}

// spot is where a value of a type is. A struct is where its first field is.
type spot struct {
	address uintptr
	of      reflect.Type
}

// remembers reports whether a type is one of those that an engine consists of, also of other packages.
func remembers(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[sets.Twins](), reflect.TypeFor[sets.Twice](), reflect.TypeFor[gates.Keeper](), reflect.TypeFor[clusters.ReadCache]():
		return true
	}
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[engine.Engine]().PkgPath()
}

// find finds the structs that are reached from a pointer or a struct.
func (m *mind) find(v reflect.Value, met map[spot]bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() || !remembers(v.Type().Elem()) || met[spot{v.Pointer(), v.Type().Elem()}] {
			return
		}
		v = v.Elem()
		m.places = append(m.places, v)
	}
	if v.Kind() != reflect.Struct {
		return
	}
	met[spot{v.UnsafeAddr(), v.Type()}] = true
	for i := range v.NumField() {
		m.find(unlocked(v.Field(i)), met)
	}
}

// unlocked returns a field that may be read and set although it is not exported.
func unlocked(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

// copied returns a copy of a value, with maps and slices of its own, and a journal of its own: the engine changes these.
func copied(v reflect.Value, deep bool) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := unlocked(out.Field(i)); field.Kind() {
			case reflect.Struct, reflect.Pointer, reflect.Map, reflect.Slice:
				if field.Type() != reflect.TypeFor[time.Time]() {
					field.Set(copied(field, deep))
				}
			default: // a value
			}
		}
	case reflect.Pointer:
		if one := v.Type().Elem(); !v.IsNil() && (deep || one == reflect.TypeFor[journal.Journal]()) {
			out.Set(reflect.New(one))
			out.Elem().Set(copied(v.Elem(), true))
		}
	case reflect.Map:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeMap(v.Type()))
		for k, one := range v.Seq2() {
			out.SetMapIndex(k, copied(one, deep))
		}
	case reflect.Slice:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i), deep))
		}
	default: // a value
	}
	return out
}

// wake gives the engine the memory of a process, and the clients of its state.
func (m *mind) wake(r *process, known *memory) *engine.Engine {
	for side, c := range r.stores {
		m.ports[side].conn = c
	}
	first := known == nil
	if first {
		known = m.fresh
	}
	for i, place := range m.places {
		place.Set(copied(known.of[i], false))
	}
	if m.woken, m.given = known, m.prepared(); first {
		m.engine.Continue(r.epoch)
	}
	return m.engine
}

// keep returns what the engine remembers now.
func (m *mind) keep(w *world) *memory {
	out := &memory{seen: map[string]map[string]string{}}
	for _, place := range m.places {
		out.of = append(out.of, copied(place, false))
	}
	for name, now := range m.prepared() {
		if out.seen[name] = m.woken.seen[name]; now != m.given[name] {
			out.seen[name] = w.versions()
		}
	}
	out.text = out.told()
	return out
}

// prepared returns where the engine has writes that looks have prepared: an engine that prepares others has them elsewhere.
func (m *mind) prepared() map[string]uintptr {
	out := map[string]uintptr{}
	for _, place := range m.places {
		for i := range place.NumField() {
			field := unlocked(place.Field(i))
			if hasWrites(field.Type()) && !field.IsNil() {
				out[place.Type().Field(i).Name] = field.Pointer()
			}
		}
	}
	return out
}

// hasWrites reports whether a type is a map of observations, or points to a struct with some.
func hasWrites(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Elem().PkgPath() == reflect.TypeFor[engine.Engine]().PkgPath() {
		for i := range t.Elem().NumField() {
			if t.Elem().Field(i).Type == reflect.TypeFor[[]plans.Observation]() {
				return true
			}
		}
	}
	return t.Kind() == reflect.Map && t.Elem() == reflect.TypeFor[plans.Observation]()
}

// versions returns the versions of the claims and volumes, which are looked at ahead.
func (w *world) versions() map[string]string {
	out := map[string]string{}
	for _, s := range w.stores {
		for _, c := range all[*corev1.PersistentVolumeClaim](s) {
			out[s.name+" "+keyOf(c).String()] = c.ResourceVersion
		}
		for _, v := range all[*corev1.PersistentVolume](s) {
			out[s.name+" "+keyOf(v).String()] = v.ResourceVersion
		}
	}
	return out
}
