package slicecontroller

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"
)

// described lists the metrics of a collector by name, with their labels.
func described(c prometheus.Collector) map[string]string {
	ch := make(chan *prometheus.Desc)
	go func() { c.Describe(ch); close(ch) }()
	out := map[string]string{}
	for d := range ch {
		m := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		out[m[1]] = m[2]
	}
	return out
}

// Every metric and label that an alert or a panel uses exists in the controller, and every metric is used,
// including the number of unavailable ordinals (961-22).
func TestAlertsUseMetricsThatExist(t *testing.T) {
	known := map[string]string{}
	for _, c := range newGauges().collectors() {
		for name, labels := range described(c) {
			known[name] = labels
		}
	}
	ours := len(known)
	// The metrics of controller-runtime are registered when the package is loaded.
	_ = workqueue.DefaultTypedControllerRateLimiter[string]()
	if r, ok := metrics.Registry.(*prometheus.Registry); ok {
		for name, labels := range described(r) {
			known[name] = labels
		}
	}
	if len(known) <= ours {
		t.Fatal("the metrics of controller-runtime are not found")
	}
	asked := map[string]bool{}
	for _, expr := range expressions(t) {
		for _, m := range regexp.MustCompile(`\b((?:statefulset|workqueue|controller_runtime)_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(expr, -1) {
			name := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(m[1], "")
			labels, exists := known[name]
			if !exists {
				t.Errorf("%s: there is no metric %s", expr, name)
			}
			asked[name] = true
			for _, l := range regexp.MustCompile(`([a-z_]+)=`).FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(","+labels+",", ","+l[1]+",") {
					t.Errorf("%s: metric %s has the labels %s, and not %s", expr, name, labels, l[1])
				}
			}
		}
	}
	for name := range known {
		if strings.HasPrefix(name, "statefulset_") && !asked[name] {
			t.Errorf("nobody looks at %s", name)
		}
	}
}

// expressions returns the queries of the alerts and of the dashboard.
func expressions(t *testing.T) []string {
	t.Helper()
	read := func(file string, into any, parse func([]byte, any) error) {
		raw, err := os.ReadFile("../deploy/chart/monitoring/slicecontroller-" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := parse(raw, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	read("alerts.yaml", &rule, func(raw []byte, into any) error { return yaml.Unmarshal(raw, into) })
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read("dashboard.json", &board, json.Unmarshal)
	var out []string
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			out = append(out, r.Expr)
		}
	}
	alerts := len(out)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	if alerts == 0 || len(out) == alerts {
		t.Fatalf("%d alerts, %d panels", alerts, len(out)-alerts)
	}
	return out
}
