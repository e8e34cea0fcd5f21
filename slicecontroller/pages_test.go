package slicecontroller

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// rows returns the rows of the table of metrics, by the collectors.
func rows(t *testing.T, collectors ...prometheus.Collector) (out []string) {
	t.Helper()
	parts := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	for _, c := range collectors {
		kind := "gauge"
		switch c.(type) {
		case *prometheus.CounterVec, prometheus.Counter:
			kind = "counter"
		case *prometheus.HistogramVec, prometheus.Histogram:
			kind = "histogram"
		}
		ch := make(chan *prometheus.Desc, 1)
		c.Describe(ch)
		m := parts.FindStringSubmatch((<-ch).String())
		if m == nil {
			t.Fatalf("%T describes itself in another way", c)
		}
		name := m[1]
		if m[3] != "" {
			name += "{" + m[3] + "}"
		}
		out = append(out, fmt.Sprintf("| `%s` | %s | %s |\n", name, kind, m[2]))
	}
	return out
}

func TestThePageHasTheMetrics(t *testing.T) {
	want := rows(t, newGauges().collectors()...)
	page, err := os.ReadFile("../docs/slicecontroller.md")
	if err != nil {
		t.Fatal(err)
	}
	have := regexp.MustCompile("(?m)^\\| `statefulset_.*\n").FindAllString(string(page), -1)
	if !slices.Equal(have, want) {
		t.Errorf("docs/slicecontroller.md has\n%s\nexpected\n%s", strings.Join(have, ""), strings.Join(want, ""))
	}
}
