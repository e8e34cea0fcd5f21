// Package monitoring has the alerts about the orchestrator's metrics and the dashboard of Grafana. They are values
// here and files in deploy/chart/monitoring, written by `make generate`. No program reads them.
package monitoring

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// In their queries, namespace is the label that Prometheus adds to the metrics of a pod:
// plans of several orchestrators may have the same name. The rules of an install ask for its own namespace alone.
// Otherwise an alert would be told once by each install, and the end of one install would not show beside the other.

// home selects the metrics of one install. The chart replaces the name in it by the namespace of the release.
const home = `namespace="stsmigrate"`

var metric = regexp.MustCompile(`\b(stsmigrate_\w+)(?:\{([^}]*)\})?`)

// atHome returns a query that asks for the metrics of one install.
func atHome(expr string) string {
	return strings.ReplaceAll(metric.ReplaceAllString(expr, "$1{"+home+",$2}"), ",}", "}")
}

// Alert is one alert for the operator.
type Alert struct {
	Name        string
	Expr        string
	For         string
	Severity    string
	Summary     string
	Description string
	// Reason is explained where the alert's runbook is; "" means any, which the plan itself shows.
	Reason reasons.ID
}

const of = "stsmigrate %s {{ $labels.plan }} -n {{ $labels.namespace }} --context HOME"

// Alerts returns all alerts.
func Alerts() []Alert { return append(aboutPlans(), aboutProcesses()...) }

func aboutPlans() []Alert {
	status, resume, abort := "`"+fmt.Sprintf(of, "status")+"`", "`"+fmt.Sprintf(of, "resume")+"`", "`"+fmt.Sprintf(of, "abort")+"`"
	const plan = "Plan {{ $labels.namespace }}/{{ $labels.plan }}"
	return []Alert{
		{
			"PlanBlocked", `max by (namespace, plan) (stsmigrate_plan_state{state="Blocked"}) == 1`, "1m", "warning",
			plan + " waits for the user",
			status + " shows the finding, which writer caused it, and the remedy. After the repair, " + resume + " continues the plan; " + abort + " moves everything back to the source. Until then nothing is written.",
			"",
		},
		{
			"PlanUnreadable", `max by (namespace, plan) (stsmigrate_plan_state{state="Unreadable"}) == 1`, "1m", "critical",
			plan + " cannot be read, and no orchestrator carries it out",
			"The event Unreadable on its ConfigMaps, stsmigrate-{{ $labels.plan }} and stsmigrate-{{ $labels.plan }}-journal, shows the reason, and so does " + status + ". If a newer release has written them, install that release again. If they were edited or lost, restore them from a backup. Until then the plan stays where it is, and nothing is written.",
			reasons.RecordUnreadable,
		},
		{
			"OrdinalOnNeitherSide", `time() - max by (namespace, plan) (stsmigrate_wave_left_timestamp_seconds) > 900`, "1m", "critical",
			plan + " has ordinals that have been on neither side for more than a quarter of an hour",
			status + " shows which ordinals, at which step, and why they wait: a node that does not release a volume, a pod that does not become available, a plan that is blocked. If the cause cannot be repaired, " + abort + " moves the ordinals back to the source.",
			"",
		},
		{
			"PlanMakesNoProgress",
			`max by (namespace, plan) (changes(stsmigrate_plan_step[5m])) == 0 and on (namespace, plan) max by (namespace, plan) (stsmigrate_plan_state{state=~"Planned|Moving|Aborting|Finalizing|Waiting"}) == 1`,
			"30m", "warning",
			plan + " has completed no step for half an hour, and it is neither paused nor blocked",
			status + " shows what the plan waits for: a cluster without a Secret, an API server that does not respond, a gate. In the state Waiting, no orchestrator has the plan under way: read the logs of the orchestrators. `" + fmt.Sprintf(of, "pause") + "` pauses the plan where no ordinal is in flight.",
			"",
		},
		{
			"OrdinalWaitsForItsPlace", `max by (namespace, plan) (stsmigrate_places_waiting) > 0`, "15m", "warning",
			plan + " has waited for a quarter of an hour for the place that its next ordinal is to have",
			"Every ordinal is up, and nothing is lost. " + status + " shows what the scheduler, the kubelet or the network says of its placeholder, and who has to act. " + resume + " with --skip-places lets the ordinal leave without that proof; " + abort + " moves everything back to the source.",
			reasons.PlaceNotReady,
		},
		{
			"PlanErrorsGoOn", `sum by (namespace, plan) (increase(stsmigrate_plan_errors_total[10m])) > 3`, "15m", "warning",
			plan + " has met errors for a quarter of an hour",
			"The orchestrator retries after each error, and nothing is lost. " + status + " and the events TryingAgain on the ConfigMap of the plan show the errors: an unavailable API server, expired credentials, a missing permission (`stsmigrate rbac --plan FILE` prints the Roles).",
			reasons.ClusterNotReached,
		},
	}
}

func aboutProcesses() []Alert {
	return []Alert{
		{
			"PlansWaitForRoom", `min by (namespace) (stsmigrate_plans_waiting) > 0`, "15m", "warning",
			"{{ $value }} plans in namespace {{ $labels.namespace }} wait for room: every orchestrator carries out as many as its memory allows",
			"The plans continue by themselves when other plans end. More replicas or a larger memory limit make room at once. `stsmigrate finalize` makes room too, for plans that have moved and only keep names (`stsmigrate get -n {{ $labels.namespace }} --context HOME` lists them).",
			reasons.WaitsForRoom,
		},
		{
			"OrchestratorPanics", `sum by (namespace) (increase(stsmigrate_panics_total[1h])) > 0`, "0m", "warning",
			"The orchestrator in namespace {{ $labels.namespace }} has panicked while it carried out a plan",
			"The plan is blocked, and no other plan is affected. `stsmigrate get -n {{ $labels.namespace }} --context HOME` lists the plans. `stsmigrate status` of the blocked plan shows where the program failed, and so do the logs. Report the panic to the maintainers; `stsmigrate abort` moves the plan back to the source.",
			reasons.ProgramFailed,
		},
		{
			"ClusterRefused", `min by (namespace, secret) (stsmigrate_clusters) == 0`, "5m", "warning",
			"Secret {{ $labels.namespace }}/{{ $labels.secret }} holds no cluster that is accepted",
			"The event Refused on the Secret names the field (`kubectl --context HOME -n {{ $labels.namespace }} describe secret {{ $labels.secret }}`). Until the process ends, its clusters are reached with the last content that was accepted. If there is none, their plans wait. Correct the Secret, or delete it to remove its clusters; `stsmigrate get -n {{ $labels.namespace }} --context HOME` lists the plans.",
			reasons.ClusterNotReached,
		},
		{
			"NotificationsFail",
			`sum by (namespace) (increase(stsmigrate_notifications_total{result=~"rejected|dropped"}[15m])) > 0 or max by (namespace) (min_over_time(stsmigrate_notifications_waiting[15m]) and stsmigrate_notifications_waiting offset 15m) > 0`,
			"0m", "warning",
			"The orchestrator in namespace {{ $labels.namespace }} cannot deliver notifications",
			"The moves are not affected. The log of the orchestrator that sends (the holder of Lease stsmigrate.notifications) names the reason: a receiver that does not answer, a certificate, a key. When the receiver accepts them again, the present state of every plan is sent. Until then `stsmigrate get -n {{ $labels.namespace }} --context HOME` shows the plans.",
			"",
		},
		{
			"NoOrchestrator", `absent(stsmigrate_plans_running)`, "10m", "critical",
			"No orchestrator runs in namespace {{ $labels.namespace }}, or its metrics are not collected",
			"Plans stay where they are, possibly with ordinals on neither side. Budgets stay tight, and the names of pods that restart are not updated. `stsmigrate get -n {{ $labels.namespace }} --context HOME` lists the plans; `kubectl --context HOME -n {{ $labels.namespace }} get pods` shows why none of its pods is ready.",
			reasons.NoOrchestrator,
		},
		{
			// A process that is killed soon after its start is seen by kube-state-metrics alone, if there is one.
			"OrchestratorRestarts",
			`max by (namespace) (changes(process_start_time_seconds{` + home + `}[1h]) and on (namespace, pod) last_over_time(stsmigrate_plans_running[1h]) or increase(kube_pod_container_status_restarts_total{` + home + `,container="orchestrator"}[1h])) > 2`,
			"0m", "critical",
			"An orchestrator in namespace {{ $labels.namespace }} is restarted again and again",
			"Its plans are taken over or continued after each restart, but may stay with ordinals on neither side meanwhile. `kubectl --context HOME -n {{ $labels.namespace }} describe pods` shows why the last container ended. After OOMKilled, raise the memory limit (orchestrator.resources.limits.memory): the memory that it may use depends on that limit. Otherwise `kubectl --context HOME -n {{ $labels.namespace }} logs -p` of the pod shows its last lines. `stsmigrate get -n {{ $labels.namespace }} --context HOME` lists the plans.",
			reasons.NoOrchestrator,
		},
	}
}

type object = map[string]any

// Rules returns the alerts as a PrometheusRule of the Prometheus Operator.
func Rules() ([]byte, error) {
	var list []object
	for _, a := range Alerts() {
		list = append(list, object{
			"alert": a.Name, "expr": atHome(a.Expr), "for": a.For, "labels": object{"severity": a.Severity},
			"annotations": object{"summary": a.Summary, "description": a.Description, "runbook_url": reasons.Runbook(a.Reason)},
		})
	}
	raw, err := yaml.Marshal(object{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": object{"name": "orchestrator", "namespace": "stsmigrate"},
		"spec": object{"groups": []object{{"name": "orchestrator", "rules": list}}},
	})
	head := "# Alerts for the orchestrator, for the Prometheus Operator. Made from orchestrator/monitoring by `make generate`.\n"
	return append([]byte(head), raw...), err
}
