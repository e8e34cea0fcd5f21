package orchestrator

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// The journal lags behind the process that carries a plan out. Therefore only that process, or the
// journal when no process does, shows since when a wave has been on neither side.
func TestTheMetricsOfAPlan(t *testing.T) {
	r := prometheus.NewRegistry()
	g, err := newGauges(r)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, lines ...string) {
		t.Helper()
		want := ""
		for _, line := range lines {
			name, _, _ := strings.Cut(line, "{")
			for _, m := range g.list() {
				if m.name == name {
					want += "# HELP " + name + " " + m.help + "\n# TYPE " + name + " " + m.kind() + "\n" + line + "\n"
				}
			}
		}
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), "stsmigrate_plan_state", "stsmigrate_plan_step", "stsmigrate_wave_left_timestamp_seconds"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := plan(t)
	counts := func(what, source, neither, destination string) {
		t.Helper()
		want := ""
		for _, c := range [][2]string{{"destination", destination}, {"neither", neither}, {"source", source}} {
			if c[1] != "" {
				want += `stsmigrate_plan_ordinals{plan="web",where="` + c[0] + `"} ` + c[1] + "\n"
			}
		}
		if want != "" {
			for _, m := range g.list() {
				if m.name == "stsmigrate_plan_ordinals" {
					want = "# HELP " + m.name + " " + m.help + "\n# TYPE " + m.name + " gauge\n" + want
				}
			}
		}
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), "stsmigrate_plan_ordinals"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	j := journal.New(p)
	j.Done = 7
	j.Enter(plans.Terminating, time.Unix(1000, 0))
	j.Enter(plans.Detaching, time.Unix(1010, 0))
	const state, left, step = `stsmigrate_plan_state{plan="web",state="Waiting"} 1`, `stsmigrate_wave_left_timestamp_seconds{plan="web"} 1000`, `stsmigrate_plan_step{plan="web"} 7`
	g.plan(p, j, "Waiting", "", "me")
	expect("a person's plan that nobody has", state, left)
	counts("at the start", "3", "0", "0")
	j.Detached = true
	g.plan(p, j, "Blocked", "", "me")
	g.plan(p, j, "Waiting", "", "me")
	expect("one that nobody has", state, step, left)
	g.plan(p, j, "Waiting", "other", "me")
	expect("another's", state, step)
	g.away(p.Name, time.Unix(1000, 0))
	g.plan(p, j, "Waiting", "me", "me")
	expect("ours, with a wave away", state, step, left)
	g.away(p.Name, time.Time{})
	g.plan(p, j, "Waiting", "me", "me")
	expect("ours, when it has arrived", state, step)
	g.plan(p, j, "Waiting", "", "me")
	g.waits(p.Name, 2, 3)
	got := [2]float64{testutil.ToFloat64(g.places.waiting.WithLabelValues(p.Name)), testutil.ToFloat64(g.places.unreached.WithLabelValues(p.Name))}
	if n := testutil.CollectAndCount(g.places.waiting); n != 1 || got != [2]float64{2, 3} {
		t.Errorf("%d plans wait for their places, with %v ordinals and addresses", n, got)
	}
	g.waits(p.Name, 0, 0)
	if n := testutil.CollectAndCount(g.places.waiting) + testutil.CollectAndCount(g.places.unreached); n != 0 {
		t.Errorf("%d plans wait for their places, expected none", n)
	}
	g.forget(p.Name)
	expect("one that is no more")
	counts("one that is no more", "", "", "")
	j.Outcome = plans.Moved
	g.plan(p, j, "Moved", "", "me")
	counts("at the end", "0", "0", "3")
	j.Outcome = plans.Finalized
	g.plan(p, j, "Finalized", "", "me")
	expect("one that is over")
	counts("one that is over", "", "", "")
}
