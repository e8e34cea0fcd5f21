package monitoring

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// panel is one panel of the dashboard: a graph over time, or a table of the present.
type panel struct {
	title, unit string
	queries     []query
}

// query is one query of a panel. In a table, legend is the title of its column.
type query struct{ expr, legend string }

// In queries, IN and OF stand for the namespaces and plans that the user has selected.
func selected(expr string) string {
	return strings.NewReplacer("IN", `namespace=~"$namespace"`, "OF", `namespace=~"$namespace",plan=~"$plan"`).Replace(expr)
}

// tables returns the panels that show the present, one in a row.
func tables() []panel {
	return []panel{{"Plans", "short", []query{
		{`max by (namespace, plan, state) (stsmigrate_plan_state{OF}) == 1`, ""}, // the state is a label
		{`max by (namespace, plan) (stsmigrate_plan_ordinals{OF,where="destination"})`, "Moved"},
		{`sum by (namespace, plan) (max by (namespace, plan, where) (stsmigrate_plan_ordinals{OF}))`, "of"},
		{`max by (namespace, plan) (stsmigrate_plan_ordinals{OF,where="neither"})`, "In flight"},
		{`time() - max by (namespace, plan) (stsmigrate_wave_left_timestamp_seconds{OF})`, "In flight for"},
		{`max by (namespace, plan) (stsmigrate_plan_step{OF})`, "Step"},
		{`sum by (namespace, plan) (increase(stsmigrate_plan_errors_total{OF}[10m]))`, "Errors in ten minutes"},
	}}}
}

// graphs returns the panels over time, two in a row.
func graphs() []panel {
	const each = "{{namespace}}/{{plan}}"
	return []panel{
		{"Plans by state", "short", []query{{`count by (state) (max by (namespace, plan, state) (stsmigrate_plan_state{OF}))`, "{{state}}"}}},
		{"Plans that have ended, per day", "short", []query{{`sum by (outcome) (increase(stsmigrate_plans_ended_total{IN}[1d]))`, "{{outcome}}"}}},
		{"Ordinals by where they are", "short", []query{{`sum by (where) (max by (namespace, plan, where) (stsmigrate_plan_ordinals{OF}))`, "{{where}}"}}},
		{"Plans that wait for the user", "short", []query{{`max by (namespace, plan) (stsmigrate_plan_state{OF,state="Blocked"})`, each}}},
		{"For how long the wave under way has been on neither side", "s", []query{{`time() - max by (namespace, plan) (stsmigrate_wave_left_timestamp_seconds{OF})`, each}}},
		{"Steps done", "short", []query{{`max by (namespace, plan) (stsmigrate_plan_step{OF})`, each}}},
		{"Ordinals that arrived, per ten minutes", "short", []query{{`sum by (side) (increase(stsmigrate_ordinals_arrived_total{IN}[10m]))`, "on the {{side}}"}}},
		{"On neither side, on average, by the parts of that time", "s", []query{
			{`sum by (span) (rate(stsmigrate_downtime_seconds_sum{IN}[30m])) / sum by (span) (rate(stsmigrate_downtime_seconds_count{IN}[30m]))`, "{{span}}"},
		}},
		{"On neither side, longest of twenty", "s", []query{{`histogram_quantile(0.95, sum by (le, span) (rate(stsmigrate_downtime_seconds_bucket{IN}[30m])))`, "{{span}}"}}},
		{"From the creation of a placeholder until its place is proven, longest of twenty", "s", []query{{`histogram_quantile(0.95, sum by (le, proof) (rate(stsmigrate_place_seconds_bucket{IN}[30m])))`, "{{proof}}"}}},
		{"Ordinals that stay up until their places are there", "short", []query{{`max by (namespace, plan) (stsmigrate_places_waiting{OF})`, each}}},
		{"Addresses that are not reached from there", "short", []query{{`max by (namespace, plan) (stsmigrate_places_unreached{OF})`, each}}},
		{"Plans under way, by process", "short", []query{{`stsmigrate_plans_running{IN}`, "{{pod}}"}}},
		{"Plans that wait for room, by process", "short", []query{{`stsmigrate_plans_waiting{IN}`, "{{pod}}"}}},
		{"Errors that are tried again, per second", "short", []query{{`sum by (namespace, plan) (rate(stsmigrate_plan_errors_total{OF}[10m]))`, each}}},
		{"Failures of the program itself, per hour", "short", []query{{`sum by (namespace) (increase(stsmigrate_panics_total{IN}[1h]))`, "{{namespace}}"}}},
		{"Secrets with clusters: 0 for refused", "short", []query{{`min by (namespace, secret) (stsmigrate_clusters{IN})`, "{{secret}}"}}},
		{"Notifications, per ten minutes", "short", []query{{`sum by (result) (increase(stsmigrate_notifications_total{IN}[10m]))`, "{{result}}"}}},
		{"Notifications that wait", "short", []query{{`max by (namespace) (stsmigrate_notifications_waiting{IN})`, "{{namespace}}"}}},
	}
}

// variable is something that the user selects above the panels, any number of them.
type variable struct{ name, label, expr string }

func variables() []variable {
	return []variable{
		{"namespace", "Namespace", `label_values(stsmigrate_plans_running, namespace)`},
		{"plan", "Plan", `label_values(stsmigrate_plan_state{IN}, plan)`},
	}
}

// annotation marks points in time on every graph: those at which its query has begun to have a result.
type annotation struct{ name, colour, expr, title string }

func annotations() []annotation {
	return []annotation{
		{
			"Plans that reach their end", "green",
			`max by (namespace, plan, state) (stsmigrate_plan_state{OF,state=~"Moved|Split"}) unless max by (namespace, plan, state) (stsmigrate_plan_state{OF} offset 1m)`,
			"{{plan}}: {{state}}",
		},
		{
			"Plans that have ended", "green",
			`sum by (namespace, outcome) (increase(stsmigrate_plans_ended_total{IN}[1m])) > 0`,
			"{{outcome}}",
		},
		{
			"Plans that need the user", "red",
			`max by (namespace, plan, state) (stsmigrate_plan_state{OF,state=~"Blocked|Unreadable"}) unless max by (namespace, plan, state) (stsmigrate_plan_state{OF} offset 1m)`,
			"{{plan}}: {{state}}",
		},
	}
}

// pages are the links above the panels, by their titles.
func pages() [][2]string {
	const docs = "https://github.com/stsmigrate/stsmigrate/blob/main/docs/"
	return [][2]string{
		{"Reasons, and what to do", reasons.Runbook("")},
		{"Ways out", docs + "ways-out.md"},
		{"Metrics and alerts", docs + "orchestrator/running.md#what-it-tells"},
	}
}

// Grafana returns the dashboard as JSON for Grafana.
func Grafana() ([]byte, error) {
	var list []object
	height := 0
	add := func(kind string, p panel, x, width int) object {
		o := object{
			"id": len(list) + 1, "type": kind, "title": p.title, "datasource": datasource(),
			"gridPos":     object{"h": 8, "w": width, "x": x, "y": height},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
		}
		list = append(list, o)
		return o
	}
	for _, p := range tables() {
		tabulate(add("table", p, 0, 24), p)
		height += 8
	}
	for k, p := range graphs() {
		var targets []object
		for n, q := range p.queries {
			targets = append(targets, object{"refId": ref(n), "expr": selected(q.expr), "legendFormat": q.legend})
		}
		add("timeseries", p, k%2*12, 12)["targets"] = targets
		height += k % 2 * 8
	}
	links := []object{}
	for _, p := range pages() {
		links = append(links, object{"type": "link", "title": p[0], "url": p[1], "targetBlank": true, "icon": "doc"})
	}
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	err := to.Encode(object{
		"title": "stsmigrate: plans", "uid": "stsmigrate-plans", "schemaVersion": 39, "tags": []string{"stsmigrate"}, "links": links,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "panels": list,
		"templating": object{"list": chosen()}, "annotations": object{"list": marks()},
	})
	return out.Bytes(), err
}

func datasource() object { return object{"type": "prometheus", "uid": "${source}"} }

func ref(n int) string { return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n : n+1] }

// tabulate makes a panel a table: a row for each plan, of the queries' present results.
func tabulate(o object, p panel) {
	var targets []object
	titles, order, hidden := object{"namespace": "Namespace", "plan": "Plan", "state": "State"}, object{"namespace": 0, "plan": 1, "state": 2}, object{"Time": true}
	for n, q := range p.queries {
		targets = append(targets, object{"refId": ref(n), "expr": selected(q.expr), "format": "table", "instant": true, "range": false})
		value := "Value #" + ref(n)
		if q.legend == "" {
			hidden[value] = true
			continue
		}
		titles[value], order[value] = q.legend, 2+n
	}
	o["targets"] = targets
	o["transformations"] = []object{
		{"id": "merge", "options": object{}},
		{"id": "organize", "options": object{"excludeByName": hidden, "indexByName": order, "renameByName": titles}},
	}
	of := func(column string, properties ...object) object {
		return object{"matcher": object{"id": "byName", "options": column}, "properties": properties}
	}
	links := func(title, url string) object {
		return object{"id": "links", "value": []object{{"title": title, "url": url}}}
	}
	colours := object{}
	for state, colour := range map[string]string{"Blocked": "red", "Unreadable": "red", "Moving": "blue", "Aborting": "blue", "Finalizing": "blue", "Paused": "orange", "Split": "orange", "Waiting": "orange", "Moved": "green", "Finalized": "green"} {
		colours[state] = object{"color": colour}
	}
	o["fieldConfig"].(object)["overrides"] = []object{
		of("Plan", links("Only this plan", "/d/stsmigrate-plans?var-source=${source}&var-namespace=${__data.fields.Namespace}&var-plan=${__value.raw}")),
		of("State", object{"id": "mappings", "value": []object{{"type": "value", "options": colours}}}, object{"id": "custom.cellOptions", "value": object{"type": "color-text"}}, links("What to do", reasons.Runbook(""))),
		of("In flight for", object{"id": "unit", "value": "s"}),
		of("Errors in ten minutes", object{"id": "decimals", "value": 0}),
	}
}

// chosen returns the variables, with the data source in front.
func chosen() []object {
	out := []object{{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}}
	for _, v := range variables() {
		out = append(out, object{
			"name": v.name, "label": v.label, "type": "query", "datasource": datasource(), "definition": selected(v.expr),
			"query": object{"query": selected(v.expr), "refId": v.name}, "refresh": 2, "sort": 1,
			"multi": true, "includeAll": true, "current": object{"text": []string{"All"}, "value": []string{"$__all"}},
		})
	}
	return out
}

func marks() []object {
	var out []object
	for _, a := range annotations() {
		out = append(out, object{
			"name": a.name, "datasource": datasource(), "enable": true, "iconColor": a.colour, "expr": selected(a.expr), "step": "60s",
			"titleFormat": a.title, "tagKeys": "namespace,plan,state",
		})
	}
	return out
}

// Queries returns the queries of all panels, and of the variables and marks above them.
func Queries() (panels, others []string) {
	for _, p := range append(tables(), graphs()...) {
		for _, q := range p.queries {
			panels = append(panels, selected(q.expr))
		}
	}
	for _, v := range variables() {
		others = append(others, selected(v.expr))
	}
	for _, a := range annotations() {
		others = append(others, selected(a.expr))
	}
	return panels, others
}
