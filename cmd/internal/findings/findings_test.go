package findings

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
)

func found() []check.Finding {
	long := strings.Repeat("word ", 30) + "end"
	return []check.Finding{
		{Check: "images", Level: check.Warn, Object: "image a", Saw: long, Want: "it there", Remedy: "pull it"},
		{Check: "drains", Level: check.Warn, Object: "Node n", Saw: "drained", Want: "none", Remedy: "wait, or type:\nkubectl uncordon n " + strings.Repeat("x", 100)},
		{Check: "images", Level: check.Warn, Object: "image b", Saw: "it is absent", Want: "it there", Remedy: "pull it"},
	}
}

// The findings of a check are together, with one pointer to its page. Only commands and addresses may be wider than the terminal.
func TestFindingsAreGroupedAndWrapped(t *testing.T) {
	got := Text(found(), 60)
	for _, line := range strings.Split(got, "\n") {
		if len(line) > 60 && !strings.Contains(line, "kubectl") && !strings.Contains(line, "https://") {
			t.Errorf("too wide: %s", line)
		}
	}
	order := []string{"Budget:\n", "  WARN drains: Node n", "         kubectl uncordon n xx", "to read more: stsmigrate explain drains\n       https://github.com/stsmigrate/stsmigrate/blob/main/docs/checks.md#drains\n", "Dependencies:\n", "image a", "image b", "to read more: stsmigrate explain images\n"}
	rest := got
	for _, want := range order {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is absent, or not in its place:\n%s", want, got)
		}
		rest = after
	}
	if n := strings.Count(got, "explain images"); n != 1 {
		t.Errorf("%d pointers to one check:\n%s", n, got)
	}
}

func TestTheTableOfAReportIsGroupedAndWrapped(t *testing.T) {
	r := &preflight.Report{Checks: []preflight.Result{
		{Group: "Access", Name: "permissions", Level: check.Pass, About: "rights"},
		{Group: "Dependencies", Name: "images", Level: check.Warn, Findings: found()[:1]},
	}}
	got := Table(r, 70)
	for _, want := range []string{
		"Access\nPASS  permissions             rights\n\nDependencies\nWARN  images                  image a: word",
		"\n2 checks: 1 passed, 1 to know about, 0 ignored, 0 failed\n", "\nWARN images: image a\n  expected it there\n  pull it\n  to read more: stsmigrate explain images\n  https://github.com/stsmigrate/stsmigrate/blob/main/docs/checks.md#images\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is absent:\n%s", want, got)
		}
	}
	for _, line := range strings.Split(got, "\n") {
		if len(line) > 70 && !strings.Contains(line, "https://") {
			t.Errorf("too wide: %s", line)
		}
	}
}

func TestNoWarningsAreNoText(t *testing.T) {
	if got := Warnings(&preflight.Report{}, 80); got != "" {
		t.Errorf("%q", got)
	}
}
