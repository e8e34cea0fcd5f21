package alerts

import (
	"os/exec"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The objects for the Prometheus Operator must have no field that it does not know.
func TestThePrometheusOperatorReadsTheObjects(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/stsmigrate", "install", "orchestrator", "slicecontroller", "monitoring")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for text := range strings.SplitSeq(string(out), "\n---\n") {
		var what struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &what); err != nil {
			t.Fatal(err)
		}
		var into any
		switch what.Kind {
		case monitoringv1.ServiceMonitorsKind:
			into = &monitoringv1.ServiceMonitor{}
		case monitoringv1.PrometheusRuleKind:
			into = &monitoringv1.PrometheusRule{}
		default:
			continue
		}
		seen[what.Kind]++
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	if seen[monitoringv1.ServiceMonitorsKind] != 2 || seen[monitoringv1.PrometheusRuleKind] != 2 {
		t.Errorf("%v, expected two of each", seen)
	}
}
