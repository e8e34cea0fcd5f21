package orchestrator

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//nolint:gochecknoglobals // a flag of the test
var update = flag.Bool("update", false, "write the dashboard and the alerts anew")

func TestDashboardAndAlertsAreAsGenerated(t *testing.T) {
	for file, make := range map[string]func() ([]byte, error){"alerts.yaml": rules, "dashboard.json": grafana} {
		want, err := make()
		if err != nil {
			t.Fatal(err)
		}
		file = "../deploy/chart/monitoring/orchestrator-" + file
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what orchestrator/monitoring.go makes (%v): run `make generate`", file, err)
		}
	}
}

// Queries use only metrics and labels that exist, and each metric is on a panel.
func TestQueriesAskForMetricsThatExist(t *testing.T) {
	known := map[string][]string{}
	for _, m := range new(gauges).list() {
		known[m.name] = m.labels
	}
	seen := map[string]bool{}
	for _, p := range panels() {
		for _, q := range p.queries {
			for _, name := range asked(t, known, q.expr) {
				seen[name] = true
			}
		}
	}
	for name := range known {
		if !seen[name] {
			t.Errorf("%s is on no panel", name)
		}
	}
	for _, a := range alerts() {
		asked(t, known, a.Expr)
		if a.Summary == "" || a.Severity == "" || !strings.Contains(a.Description, "`stsmigrate ") {
			t.Errorf("%s does not say what to do: %+v", a.Name, a)
		}
	}
}

// asked returns the metrics of a query, and checks that their labels exist: those of the metrics
// themselves, and those that Prometheus adds.
func asked(t *testing.T, known map[string][]string, expr string) (names []string) {
	t.Helper()
	labels := []string{"namespace", "pod"}
	for _, m := range regexp.MustCompile(`(stsmigrate_\w+)(\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
		name := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(m[1], "")
		of, exists := known[name]
		if !exists {
			t.Errorf("%s: there is no metric %s", expr, name)
		}
		for _, l := range regexp.MustCompile(`(\w+)(=|!)`).FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of, l[1]) {
				t.Errorf("%s: %s has no label %s", expr, name, l[1])
			}
		}
		names, labels = append(names, name), append(labels, of...)
	}
	for _, m := range regexp.MustCompile(`(?:by|on) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.Split(m[1], ", ") {
			if l != "le" && !slices.Contains(labels, l) {
				t.Errorf("%s: nothing in it has the label %s", expr, l)
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s asks for none of our metrics", expr)
	}
	return names
}

func TestThePageHasTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../docs/orchestrator/running.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range new(gauges).list() {
		name := m.name
		if len(m.labels) > 0 {
			name += "{" + strings.Join(m.labels, ",") + "}"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |\n", name, m.kind(), m.help))
	}
	have := regexp.MustCompile("(?m)^\\| `stsmigrate_.*\n").FindAllString(string(page), -1)
	if !slices.Equal(have, want) {
		t.Errorf("docs/orchestrator/running.md has\n%s\nexpected\n%s", strings.Join(have, ""), strings.Join(want, ""))
	}
}
