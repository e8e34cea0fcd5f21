package orchestrator

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/orchestrator/monitoring"
)

//nolint:gochecknoglobals // a flag of the test
var update = flag.Bool("update", false, "write the dashboard, the alerts and the table of metrics anew")

func TestDashboardAndAlertsAreAsGenerated(t *testing.T) {
	for file, make := range map[string]func() ([]byte, error){"alerts.yaml": monitoring.Rules, "dashboard.json": monitoring.Grafana} {
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
			t.Errorf("%s is not what orchestrator/monitoring makes (%v): run `make generate`", file, err)
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
	panels, others := monitoring.Queries()
	for _, expr := range panels {
		for _, name := range asked(t, known, expr) {
			seen[name] = true
		}
	}
	for _, expr := range others {
		asked(t, known, expr)
	}
	for name := range known {
		if !seen[name] {
			t.Errorf("%s is on no panel", name)
		}
	}
	for _, a := range monitoring.Alerts() {
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
			if l[1] != "namespace" && !slices.Contains(of, l[1]) {
				t.Errorf("%s: %s has no label %s", expr, name, l[1])
			}
		}
		names, labels = append(names, name), append(labels, of...)
	}
	if m := regexp.MustCompile(`^label_values\(.*, (\w+)\)$`).FindStringSubmatch(expr); m != nil && !slices.Contains(labels, m[1]) {
		t.Errorf("%s: nothing in it has the label %s", expr, m[1])
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
	const file = "../docs/orchestrator/running.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, m := range new(gauges).list() {
		name := m.name
		if len(m.labels) > 0 {
			name += "{" + strings.Join(m.labels, ",") + "}"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", name, m.kind(), m.help)
	}
	rows := regexp.MustCompile("(?:\\| `stsmigrate_.*\n)+")
	made := rows.ReplaceAllLiteral(page, []byte(want.String()))
	if *update {
		if err := os.WriteFile(file, made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(page, made) || !rows.Match(page) {
		t.Errorf("%s has\n%s\nexpected\n%s: go test ./orchestrator -run TestThePage -update", file, rows.Find(page), &want)
	}
}

// drawn is what Grafana reads of the dashboard.
type drawn struct {
	Panels []struct {
		ID      int
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ RefID, Expr string }
	}
	Templating  struct{ List []struct{ Name, Type string } }
	Annotations struct {
		List []struct{ Name, Expr, TitleFormat string }
	}
	Links []struct{ URL string }
}

func draw(t *testing.T) (d drawn, text string) {
	t.Helper()
	raw, err := monitoring.Grafana()
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, string(raw)
}

// Whatever the user selects, each panel and annotation is about that, and each variable exists.
func TestTheDashboardShowsWhatIsSelected(t *testing.T) {
	d, text := draw(t)
	var known []string
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	if !slices.Equal(known, []string{"source", "namespace", "plan"}) || d.Templating.List[0].Type != "datasource" {
		t.Errorf("the variables are %v", d.Templating.List)
	}
	for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(known, m[1]) && !strings.HasPrefix(m[1], "__") {
			t.Errorf("there is no variable %s", m[0])
		}
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			follows(t, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		follows(t, a.Expr)
	}
	if len(d.Annotations.List) == 0 || len(d.Links) == 0 {
		t.Errorf("%d annotations, %d links", len(d.Annotations.List), len(d.Links))
	}
}

// The table of plans comes first, and no panel covers another one.
func TestThePanelsHaveTheirPlaces(t *testing.T) {
	d, _ := draw(t)
	if len(d.Panels) == 0 || d.Panels[0].Type != "table" || len(d.Panels[0].Targets) < 5 {
		t.Fatalf("%+v", d.Panels)
	}
	taken := map[[2]int]int{}
	for _, p := range d.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if taken[[2]int{x, y}] > 0 || x >= 24 {
					t.Fatalf("panels %d and %d are in one place", p.ID, taken[[2]int{x, y}])
				}
				taken[[2]int{x, y}] = p.ID
			}
		}
	}
}

// follows checks that each metric of a query is limited to the selected namespaces, and plans if it has them.
func follows(t *testing.T, expr string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(stsmigrate_\w+)(\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
		perPlan := slices.ContainsFunc(new(gauges).list(), func(k metric) bool { return k.name == m[1] && slices.Contains(k.labels, "plan") })
		if !strings.Contains(m[2], `namespace=~"$namespace"`) || perPlan && !strings.Contains(m[2], `plan=~"$plan"`) {
			t.Errorf("%s: %s is not limited to what is selected", expr, m[1])
		}
	}
}
