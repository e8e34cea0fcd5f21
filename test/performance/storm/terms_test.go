package main

import (
	"math"
	"testing"
	"time"
)

// What windows have counted is the sum of what the terms say, and the terms are found again.
func TestTheTermsOfWindows(t *testing.T) {
	const perOrdinal, perPlan, atRest, perProcess = 45.0, 110.0, 2.0, 16.0
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(name string, minutes, resting float64, plans, ordinals int, share float64) *window {
		n := 2*perProcess*minutes + atRest*resting + share*(perPlan*float64(plans)+perOrdinal*float64(ordinals))
		return &window{name: name, from: start, to: start.Add(time.Duration(minutes * float64(time.Minute))), resting: resting, plans: plans, ordinals: ordinals, of: map[string]asked{"pods": {"get": int(n)}}}
	}
	m := measured{storm: &storm{options: options{processes: 2}}, windows: []*window{
		at("no plan", 2, 0, 0, 0, 0), at("plans at rest", 2, 40, 0, 0, 0),
		at("wide: handed over and moved", 3, 70, 6, 60, 0.75), at("wide: finalized", 1, 21, 6, 60, 0.25),
		at("narrow: handed over and moved", 2, 45, 6, 6, 0.75), at("narrow: finalized", 1, 20, 6, 6, 0.25),
	}}
	got := m.of(func(w *window) int { return w.of["pods"].all() })
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"ordinal", got.ordinal, perOrdinal}, {"plan", got.plan, perPlan}, {"rest", got.rest, atRest}, {"process", got.process, perProcess}} {
		if math.Abs(c.got-c.want) > 0.5 {
			t.Errorf("per %s: %.2f, expected %.2f", c.name, c.got, c.want)
		}
	}
}

// A plan is at rest from when it has moved, or from the beginning of the window.
func TestTheTimeAtRest(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	moved := map[string]time.Time{"before": start.Add(-time.Hour), "meanwhile": start.Add(time.Minute), "later": start.Add(time.Hour)}
	if got := restIn(start, start.Add(3*time.Minute), moved); got != 5 {
		t.Errorf("%v minutes, expected 3 of one plan and 2 of the other", got)
	}
}
