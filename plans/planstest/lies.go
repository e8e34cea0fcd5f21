package planstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// absent is the lie that a value is not there.
type absent struct{}

// lies returns what may be in the place of a value of a JSON document.
func lies(truth any) []any {
	var near []any
	switch v := truth.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			near = []any{n - 1, n + 1, 2 * n}
		}
	case string:
		near = []any{v + "x", strings.ToUpper(v), v[:len(v)/2], " " + v, v + "/" + v}
	case []any:
		near = []any{slices.Concat(v, v), slices.Clone(v)[:len(v)/2]}
	}
	return append(near,
		absent{}, nil, true, false, 0, 1, 2, -1, math.MaxInt32, math.MinInt32, json.Number("9223372036854775807"), json.Number("1e9999"), 0.5,
		"", "a", "A", "-", "..", "a/b", "a\nb", "$(POD)", "source", "destination", "5%", "24h", "0001-01-01T00:00:00Z", strings.Repeat("a", 300), "\xff",
		[]any{}, []any{nil}, map[string]any{}, map[string]any{"a": nil},
	)
}

// A place is a value of a JSON document.
type place struct {
	path  []any // the keys and the indices of lists
	truth any
}

// Lie shows take what becomes of a JSON document if one of its values is another: each value in turn, each lie. Then it
// shows documents of two lies, as many as twice says, which are the same in every run; some of these lies are the truth
// about another value. take is also told what was changed, and reports whether it believes the
// document. Lie returns how many were believed: with none, it has shown nothing.
func Lie(tb testing.TB, raw []byte, twice int, take func(what string, raw []byte) bool) (believed int) {
	tb.Helper()
	for what, raw := range told(tb, raw, twice) {
		if take(what, raw) {
			believed++
		}
		if tb.Failed() {
			tb.Fatal(what)
		}
	}
	return believed
}

// told returns the documents of Lie, and what was changed in each.
func told(tb testing.TB, raw []byte, twice int) iter.Seq2[string, []byte] {
	tb.Helper()
	all, draw := places(read(tb, raw), nil), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same lies in every run
	one := func() place { return all[draw.IntN(len(all))] }
	return func(yield func(string, []byte) bool) {
		for _, at := range all {
			for _, lie := range lies(at.truth) {
				if !yield(fmt.Sprintf("%v is %.20v", at.path, lie), written(tb, with(read(tb, raw), at.path, lie))) {
					return
				}
			}
		}
		for range twice {
			doc, what := read(tb, raw), ""
			for range 2 {
				at, lie := one(), read(tb, written(tb, one().truth))
				if of := lies(at.truth); draw.IntN(2) == 0 {
					lie = of[draw.IntN(len(of))]
				}
				doc, what = with(doc, at.path, lie), what+fmt.Sprintf("%v is %.20v; ", at.path, lie)
			}
			if !yield(what, written(tb, doc)) {
				return
			}
		}
	}
}

func read(tb testing.TB, raw []byte) (doc any) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		tb.Fatal(err)
	}
	return doc
}

func written(tb testing.TB, doc any) []byte {
	tb.Helper()
	out, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// places returns all values below a value, in the order of their keys.
func places(v any, path []any) []place {
	var out []place
	add := func(key, v any) {
		here := append(slices.Clone(path), key)
		out = append(append(out, place{here, v}), places(v, here)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			add(key, v[key])
		}
	case []any:
		for i, value := range v {
			add(i, value)
		}
	}
	return out
}

// with returns a document with a lie at a place. A place that an earlier lie took away stays away.
func with(doc any, path []any, lie any) any {
	if len(path) == 0 {
		return lie
	}
	switch v := doc.(type) {
	case map[string]any:
		key, _ := path[0].(string)
		value, there := v[key]
		if !there {
			return v
		}
		v[key] = with(value, path[1:], lie)
		if _, is := v[key].(absent); is {
			delete(v, key)
		}
	case []any:
		i, is := path[0].(int)
		if !is || i >= len(v) {
			return v
		}
		v[i] = with(v[i], path[1:], lie)
		if _, is := v[i].(absent); is {
			return slices.Delete(v, i, i+1)
		}
	}
	return doc
}
