package simulation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// This file says which memories of an engine are one, as identity.go does for the states of a world.

// memory is what an engine remembers. It is never changed.
type memory struct {
	of []reflect.Value // as the places of the mind
	// text tells it from others, and journal is the version of the journal that it knows.
	text    *text
	journal string
	// seen has the versions of what was looked at for the writes that are prepared.
	seen map[string]map[string]string
}

// outdated tells what a memory knows that is so no more: the journal, and what was looked at ahead.
func (k *memory) outdated(w *world) string {
	b := &strings.Builder{}
	known := func(c *corev1.ConfigMap) bool { return fmt.Sprintf("{%s %s}", c.UID, c.ResourceVersion) == k.journal }
	fmt.Fprint(b, slices.ContainsFunc(all[*corev1.ConfigMap](w.on[plans.Destination]), known))
	for _, name := range slices.Sorted(maps.Keys(k.seen)) {
		now := w.versions()
		fmt.Fprintf(b, " %s", name)
		for _, of := range slices.Sorted(maps.Keys(k.seen[name])) {
			if now[of] != k.seen[name][of] {
				fmt.Fprintf(b, " %s", of)
			}
			delete(now, of)
		}
		fmt.Fprintf(b, " and %d", len(now))
	}
	return b.String()
}

// told says all of it but versions, times, epochs and counts of writes.
func (k *memory) told() *text {
	b := &strings.Builder{}
	for _, one := range k.of {
		if one.Type() != reflect.TypeFor[clusters.ReadCache]() { // every look empties it first
			b.WriteString(one.Type().Name())
			k.describe(b, one)
		}
	}
	return textOf(b.String())
}

// untold returns the fields of an engine that nothing depends on, or that a state has already.
func untold() []string {
	return []string{"epoch", "uncounted", "plan", "store", "Recent", "Permit", "sending"}
}

func (k *memory) describe(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		k.describeStruct(b, v)
	case reflect.Pointer:
		k.describePointer(b, v)
	case reflect.Map:
		k.describeMap(b, v)
	case reflect.Slice, reflect.Array:
		b.WriteString(" [")
		for i := range v.Len() {
			k.describe(b, v.Index(i))
		}
		b.WriteString("]")
	case reflect.Interface:
		if err, is := v.Interface().(error); is {
			b.WriteString(" " + err.Error())
		}
	case reflect.Func:
		fmt.Fprint(b, " ", v.IsNil())
	case reflect.Chan:
	default:
		fmt.Fprint(b, " ", v)
	}
}

func (k *memory) describePointer(b *strings.Builder, v reflect.Value) {
	switch {
	case v.IsNil():
		b.WriteString(" nil")
	case v.Type().Elem() == reflect.TypeFor[journal.Journal]():
		b.WriteString(journalWords(v.Interface().(*journal.Journal)))
	case !remembers(v.Type().Elem()) || hasWrites(v.Type()) || v.Type().Elem() == reflect.TypeFor[engine.Progress]():
		one := reflect.New(v.Type().Elem()).Elem()
		one.Set(v.Elem())
		k.describe(b, one)
	}
}

func (k *memory) describeMap(b *strings.Builder, v reflect.Value) {
	var rows []string
	for name, one := range v.Seq2() {
		row, value := &strings.Builder{}, reflect.New(one.Type()).Elem()
		value.Set(one)
		fmt.Fprint(row, " ", name)
		k.describe(row, value)
		rows = append(rows, row.String())
	}
	slices.Sort(rows)
	fmt.Fprint(b, rows)
}

func (k *memory) describeStruct(b *strings.Builder, v reflect.Value) {
	switch t := v.Type(); {
	case t == reflect.TypeFor[time.Time]():
		fmt.Fprint(b, " ", v.Interface().(time.Time).IsZero())
		return
	case t == reflect.TypeFor[records.Version]():
		k.journal = fmt.Sprint(v)
		return
	case t.PkgPath() == "sync":
		return
	}
	for i := range v.NumField() {
		field := unlocked(v.Field(i))
		if slices.Contains(untold(), v.Type().Field(i).Name) {
			continue
		}
		if note, is := field.Interface().(func(*journal.Journal)); is && note != nil {
			j := &journal.Journal{}
			note(j)
			b.WriteString(journalWords(j))
			continue
		}
		k.describe(b, field)
	}
}

func journalWords(j *journal.Journal) string {
	raw, err := json.Marshal(j)
	must(err)
	return " " + string(uncount(raw))
}
