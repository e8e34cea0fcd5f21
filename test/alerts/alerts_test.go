// Package alerts evaluates the alert rules of this repository as Prometheus does. It is a module of
// its own, so that Prometheus is not in the product's go.mod.
package alerts

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// history is the expected result of an alert for two hours of samples, one sample per minute.
type history struct {
	// fires are series for which the alert fires, with the summary in says. quiet are series for
	// which it never fires.
	fires, says, quiet string
}

// ofThePlans returns the stories of the alerts about plans. Several processes may report one plan.
func ofThePlans() map[string]history {
	return map[string]history{
		"PlanBlocked": {
			fires: `stsmigrate_plan_state{namespace="sts", pod="a", plan="web", state="Blocked"} _x50 1x70
			        stsmigrate_plan_state{namespace="sts", pod="b", plan="web", state="Blocked"} _x50 1x70`,
			says:  "Plan sts/web waits for the user",
			quiet: `stsmigrate_plan_state{namespace="sts", pod="a", plan="web", state="Paused"} 1x120`,
		},
		"PlanUnreadable": {
			fires: `stsmigrate_plan_state{namespace="sts", pod="a", plan="web", state="Unreadable"} _x50 1x70`,
			says:  "Plan sts/web cannot be read, and no orchestrator carries it out",
			quiet: `stsmigrate_plan_state{namespace="sts", pod="a", plan="web", state="Blocked"} 1x120`,
		},
		"OrdinalOnNeitherSide": { // fires: left at minute 100; quiet: back each time, last left at minute 119
			fires: `stsmigrate_wave_left_timestamp_seconds{namespace="sts", pod="a", plan="web"} _x100 6000x20`,
			says:  "Plan sts/web has ordinals that have been on neither side for more than a quarter of an hour",
			quiet: `stsmigrate_wave_left_timestamp_seconds{namespace="sts", pod="a", plan="web"} _x60 3600x10 _x9 4800x10 _x9 5940x10 _x9 7140x1`,
		},
		"PlanMakesNoProgress": {
			fires: `stsmigrate_plan_step{namespace="sts", pod="a", plan="web"} 0+1x70 71x60
			        stsmigrate_plan_step{namespace="sts", pod="b", plan="web"} 0+1x70 71x60
			        stsmigrate_plan_state{namespace="sts", pod="a", plan="web", state="Moving"} 1x120
			        stsmigrate_plan_step{namespace="sts", pod="a", plan="db"} 0+1x120
			        stsmigrate_plan_state{namespace="sts", pod="a", plan="db", state="Moving"} 1x120`,
			says: "Plan sts/web has completed no step for half an hour, and it is neither paused nor blocked",
			// A slow plan, a blocked plan, a moved plan, and a plan whose command the user has
			// ended.
			quiet: `stsmigrate_plan_step{namespace="sts", pod="a", plan="web"} 1x25 2x25 3x25 4x25 5x25
			        stsmigrate_plan_state{namespace="sts", pod="a", plan="web", state="Moving"} 1x120
			        stsmigrate_plan_step{namespace="sts", pod="a", plan="db"} 7x120
			        stsmigrate_plan_state{namespace="sts", pod="a", plan="db", state="Blocked"} 1x120
			        stsmigrate_plan_step{namespace="sts", pod="a", plan="mq"} 7x120
			        stsmigrate_plan_state{namespace="sts", pod="a", plan="mq", state="Moved"} 1x120
			        stsmigrate_plan_state{namespace="sts", pod="a", plan="cli", state="Stopped"} 1x120`,
		},
		"OrdinalWaitsForItsPlace": {
			fires: `stsmigrate_places_waiting{namespace="sts", pod="a", plan="web"} 1x60`,
			says:  "Plan sts/web has waited for a quarter of an hour for the place that its next ordinal is to have",
			quiet: `stsmigrate_places_waiting{namespace="sts", pod="a", plan="web"} 1x12 0x3 1x12 0x80`,
		},
		"PlanErrorsGoOn": {
			fires: `stsmigrate_plan_errors_total{namespace="sts", pod="a", plan="web"} 0x60 1+1x60`,
			says:  "Plan sts/web has met errors for a quarter of an hour",
			quiet: `stsmigrate_plan_errors_total{namespace="sts", pod="a", plan="web"} 0x60 10x60
			        stsmigrate_plan_errors_total{namespace="sts", pod="a", plan="db"} 0x25 1x25 2x25 3x25 4x25`,
		},
	}
}

// ofItsProcesses returns the stories of the alerts about the orchestrator's processes and the
// clusters that they reach.
func ofItsProcesses() map[string]history {
	return map[string]history{
		"PlansWaitForRoom": {
			fires: `stsmigrate_plans_waiting{namespace="sts", pod="a"} 0x80 7x40
			        stsmigrate_plans_waiting{namespace="sts", pod="b"} 0x80 5x40`,
			says: "5 plans in namespace sts wait for room: every orchestrator carries out as many as its memory allows",
			// One process has no room, and another one is about to run the waiting plans.
			quiet: `stsmigrate_plans_waiting{namespace="sts", pod="a"} 7x120
			        stsmigrate_plans_waiting{namespace="sts", pod="b"} 0x120`,
		},
		"OrchestratorPanics": {
			fires: `stsmigrate_panics_total{namespace="sts", pod="a"} 0x60 1x60`,
			says:  "The orchestrator in namespace sts has panicked while it carried out a plan",
			quiet: `stsmigrate_panics_total{namespace="sts", pod="a"} 0x120`,
		},
		"ClusterRefused": {
			fires: `stsmigrate_clusters{namespace="sts", pod="a", secret="west"} 1x100 0x20
			        stsmigrate_clusters{namespace="sts", pod="a", secret="east"} 1x120`,
			says:  "Secret sts/west holds no cluster that is accepted",
			quiet: `stsmigrate_clusters{namespace="sts", pod="a", secret="west"} 1x50 0x2 1x70`,
		},
		"NotificationsFail": {
			fires: `stsmigrate_notifications_total{namespace="sts", pod="a", result="dropped"} 0x60 1x60`,
			says:  "The orchestrator in namespace sts cannot deliver notifications",
			quiet: `stsmigrate_notifications_total{namespace="sts", pod="a", result="delivered"} 0+1x120
			        stsmigrate_notifications_total{namespace="sts", pod="a", result="retried"} 0+1x120
			        stsmigrate_notifications_waiting{namespace="sts", pod="a"} 3x10 0 3x10 0x99`,
		},
		"NoOrchestrator": {
			fires: `stsmigrate_plans_running{namespace="sts", pod="a"} 0x60
			        stsmigrate_plans_running{namespace="other", pod="x"} 0x120`,
			says: "No orchestrator runs in namespace sts, or its metrics are not collected",
			quiet: `stsmigrate_plans_running{namespace="sts", pod="a"} 0x60
			        stsmigrate_plans_running{namespace="other", pod="x"} 0x10
			        stsmigrate_plans_running{namespace="sts", pod="b"} _x66 0x60`,
		},
		"OrchestratorRestarts": {
			fires: `process_start_time_seconds{namespace="sts", pod="a"} 0x20 1300x5 1600x5 2000x90
			        stsmigrate_plans_running{namespace="sts", pod="a"} 0x120`,
			says: "An orchestrator in namespace sts is restarted again and again",
			// One restart an hour, another program, another install, a rollout.
			quiet: `process_start_time_seconds{namespace="sts", pod="a"} 0x50 3000x60
			        stsmigrate_plans_running{namespace="sts", pod="a"} 0x120
			        process_start_time_seconds{namespace="sts", pod="db"} 0+60x120
			        process_start_time_seconds{namespace="other", pod="a"} 0+60x120
			        stsmigrate_plans_running{namespace="other", pod="a"} 0x120
			        kube_pod_container_status_restarts_total{namespace="sts", pod="db", container="db"} 0+1x120
			        process_start_time_seconds{namespace="sts", pod="b"} _x60 3600x60
			        stsmigrate_plans_running{namespace="sts", pod="b"} _x60 0x60`,
		},
	}
}

func ofTheSliceController() map[string]history {
	return map[string]history{
		"EnforcedRollingUpdateHalted": {
			fires: `statefulset_safety_halt_total{} 0x110 1x10`,
			says:  "An update has halted because its highest ordinal does not become available",
			quiet: `statefulset_safety_halt_total{} 3x120`,
		},
		"StatefulSetUnavailable": {
			fires: `statefulset_controller_statefulset_unavailable_replicas{statefulset_namespace="shop", statefulset_name="web", pod_management_policy="Parallel"} 0x90 3x30
			        statefulset_controller_statefulset_max_unavailable{statefulset_namespace="shop", statefulset_name="web", pod_management_policy="Parallel"} 1x120`,
			says: "shop/web has more pods down than an update may take",
			quiet: `statefulset_controller_statefulset_unavailable_replicas{statefulset_namespace="shop", statefulset_name="web", pod_management_policy="Parallel"} 1x120
			        statefulset_controller_statefulset_max_unavailable{statefulset_namespace="shop", statefulset_name="web", pod_management_policy="Parallel"} 1x120`,
		},
		"ForcedReplacementsFail": {
			fires: `statefulset_forced_pod_replacements_total{namespace="shop", name="web", result="failure"} 0x80 0+1x40`,
			says:  "Broken pods of shop/web were replaced, and their successors broke too",
			quiet: `statefulset_forced_pod_replacements_total{namespace="shop", name="web", result="failure"} 0x80 1x40
			        statefulset_forced_pod_replacements_total{namespace="shop", name="web", result="success"} 0x80 0+1x40`,
		},
		"ForcedReplacementsSlow": {
			fires: `statefulset_forced_replacement_duration_seconds_bucket{le="300"} 0x120
			        statefulset_forced_replacement_duration_seconds_bucket{le="900"} 0+1x120
			        statefulset_forced_replacement_duration_seconds_bucket{le="+Inf"} 0+1x120`,
			says: "Recovery from broken templates takes more than five minutes",
			quiet: `statefulset_forced_replacement_duration_seconds_bucket{le="300"} 0+99x120
			        statefulset_forced_replacement_duration_seconds_bucket{le="900"} 0+100x120
			        statefulset_forced_replacement_duration_seconds_bucket{le="+Inf"} 0+100x120`,
		},
		"SliceControllerBusy": {
			fires: `statefulset_reconcile_delay_bucket{le="5"} 0+90x120
			        statefulset_reconcile_delay_bucket{le="10"} 0+100x120
			        statefulset_reconcile_delay_bucket{le="+Inf"} 0+100x120`,
			says: "Sets wait for more than five seconds until the controller reconciles them",
			quiet: `statefulset_reconcile_delay_bucket{le="5"} 0+100x120
			        statefulset_reconcile_delay_bucket{le="10"} 0+100x120
			        statefulset_reconcile_delay_bucket{le="+Inf"} 0+100x120`,
		},
		"SliceControllerBehind": {
			fires: `statefulset_controller_stale_sync_skips_total{group="", resource="pods"} 0+60x120
			        statefulset_controller_stale_sync_skips_total{group="apps", resource="controllerrevisions"} 0+60x120`,
			says: "The controller's watches lag behind its writes",
			quiet: `statefulset_controller_stale_sync_skips_total{group="", resource="pods"} 0+30x120
			        statefulset_controller_stale_sync_skips_total{group="apps", resource="controllerrevisions"} 0+20x120`,
		},
		"SliceControllerErrors": {
			fires: `controller_runtime_reconcile_errors_total{controller="statefulset"} 0+12x120`,
			says:  "Reconciliations of sets keep failing",
			quiet: `controller_runtime_reconcile_errors_total{controller="statefulset"} 0+1x120
			        controller_runtime_reconcile_errors_total{controller="other"} 0+12x120`,
		},
	}
}

// rule is one alert of a file for the Prometheus Operator.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func TestEveryAlertFiresOnlyWhenItShould(t *testing.T) {
	files, err := filepath.Glob("../../deploy/chart/monitoring/*-alerts.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	told := ofThePlans()
	maps.Copy(told, ofItsProcesses())
	maps.Copy(told, ofTheSliceController())
	for _, file := range files {
		for _, r := range read(t, file) {
			t.Run(r.Alert, func(t *testing.T) {
				s, ok := told[r.Alert]
				if !ok {
					t.Fatal("there is no story about it")
				}
				delete(told, r.Alert)
				if fired := evaluate(t, r, s.fires); len(fired) != 1 || fired[0] != s.says {
					t.Errorf("it fires with %q, expected %q", fired, s.says)
				}
				if fired := evaluate(t, r, s.quiet); len(fired) > 0 {
					t.Errorf("it fires with %q where all is well", fired)
				}
			})
		}
	}
	for name := range told {
		t.Errorf("%s is the alert of no file", name)
	}
}

func read(t *testing.T, file string) (out []rule) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	if err := yaml.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	for _, g := range in.Spec.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// evaluate returns the summaries of an alert that fires at any minute of the series.
func evaluate(t *testing.T, r rule, series string) (fired []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(r.Expr, `namespace="stsmigrate"`, `namespace="sts"`)) // as the chart does
	if err != nil {
		t.Fatal(err)
	}
	var hold model.Duration
	if r.For != "" {
		if hold, err = model.ParseDuration(r.For); err != nil {
			t.Fatal(err)
		}
	}
	samples := promqltest.LoadedStorage(t, "load 1m\n"+indent(series))
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, 1_000_000), samples)
	a := rules.NewAlertingRule(r.Alert, expr, time.Duration(hold), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, nil)
	seen := map[string]bool{}
	for minute := range 121 {
		if _, err := a.Eval(t.Context(), 0, time.Unix(int64(minute)*60, 0), query, nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, one := range a.ActiveAlerts() {
			summary := one.Annotations.Get("summary")
			if one.State == rules.StateFiring && !seen[summary] {
				seen[summary], fired = true, append(fired, summary)
			}
			if text := one.Annotations.String(); strings.Contains(text, "<error") || strings.Contains(text, "no value") {
				t.Errorf("its annotations are not filled in: %s", text)
			}
		}
	}
	return fired
}

// indent puts each series on a line of its own, as the test language requires.
func indent(series string) string {
	var out strings.Builder
	for line := range strings.Lines(series) {
		out.WriteString("  " + strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// A process that is killed before it is collected shows in the restarts that kube-state-metrics counts, and between two
// kills its metrics are there, so that the alert about its absence says nothing.
func TestAnOrchestratorThatIsKilledSoonIsTold(t *testing.T) {
	const series = `kube_pod_container_status_restarts_total{namespace="sts", pod="a", container="orchestrator"} 0x60 1x5 2x5 3x5 4x45`
	for _, r := range read(t, "../../deploy/chart/monitoring/orchestrator-alerts.yaml") {
		if r.Alert != "OrchestratorRestarts" {
			continue
		}
		if fired := evaluate(t, r, series); len(fired) != 1 {
			t.Errorf("it fires with %q", fired)
		}
		return
	}
	t.Error("there is no such alert")
}

// The rules of each install are about its own metrics. Otherwise each install would tell of the plans of all.
func TestEachInstallAlertsAboutItself(t *testing.T) {
	for _, r := range read(t, "../../deploy/chart/monitoring/orchestrator-alerts.yaml") {
		if fired := evaluate(t, r, elsewhere(ofThePlans()[r.Alert].fires+ofItsProcesses()[r.Alert].fires)); len(fired) > 0 && r.Alert != "NoOrchestrator" {
			t.Errorf("%s fires about another install: %q", r.Alert, fired)
		}
	}
}

// elsewhere returns series as another install has them.
func elsewhere(series string) string {
	return strings.ReplaceAll(series, `namespace="sts"`, `namespace="elsewhere"`)
}
