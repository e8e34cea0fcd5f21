package plainyaml

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestADocumentIsReadAsItStands(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: [x, 'y * & z']\n":      `{"a":1,"b":["x","y * \u0026 z"]}`,
		"a: &name 1\n":                   `{"a":1}`,
		"a: '*x'\nb: '&x'\n":             `{"a":"*x","b":"\u0026x"}`,
		"a: &x {b: [1]}\nc: [*x, *x]\n":  `{"a":{"b":[1]},"c":[{"b":[1]},{"b":[1]}]}`,
		"a: &x {b: 1}\nc: {<<: *x}\n":    `{"a":{"b":1},"c":{"b":1}}`,
		"a: &x 1\nb: &y [*x]\nc: [*y]\n": `{"a":1,"b":[1],"c":[[1]]}`,
		"":                               "null",
		"---\na: 1\n---\n# no more\n":    `{"a":1}`,
		"a: '...'\n... # no more\n":      `{"a":"..."}`,
		"a: |\n  x\n  ---\n  y\nb: 2":    `{"a":"x\n---\ny\n","b":2}`,
	} {
		if got, err := ToJSON([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%q: %s (%v), expected %s", text, got, err, want)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: &x [*x]\n":      "write out what is meant",
		"a: &x {b: {*x }}":  "write out what is meant",
		"a: 1\n---\nb: 2\n": "more than one YAML document",
		"a: 1\n---\n[":      "more than one YAML document",
		"a: 1\n...\nb: 2\n": "more than one YAML document",
		"a: 1\r---\rb: 2\r": "more than one YAML document",
		"{a: 1}\n{b: 2}\n":  "more than one YAML document",
		"a: 1\na: 2\n":      "already set",
		"a: [\n":            "did not find",
		"a: '&*\n":          "found unexpected end of stream",
		"a: &x 1\nb: *y\n":  "unknown anchor",
		"a: &x 1\na: [*x]":  "already set",
		billion(10, "x"):    "write out what is meant",
		billion(10, "x: y"): "write out what is meant",
	} {
		if got, err := ToJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %.100s (%v), expected %q", text, got, err, want)
		}
	}
}

// billion returns a document of aliases of aliases, each of ten.
func billion(levels int, leaf string) string {
	out := "a0: &a0 {" + leaf + "}\n"
	for k := range levels {
		out += fmt.Sprintf("a%d: &a%d [%s]\n", k+1, k+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", k), 10), ", "))
	}
	return out
}

// The memory that a text takes is limited, whatever its aliases stand for. Plain values around them deceive the limit of
// the parser, which goes by the share of aliases.
func TestAliasesTakeLittleMemory(t *testing.T) {
	text := "plain: [" + strings.Repeat("0,", 1000) + "]\nl: &l " + strings.Repeat("x", 10<<10) + "\nb: &b [" + strings.Repeat("*l,", 300) + "]\nc: [" + strings.Repeat("*b,", 100) + "]\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ToJSON([]byte(text))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrAliases) || took > 10<<20 {
		t.Errorf("%d bytes take %d bytes (%v)", len(text), took, err)
	}
}
