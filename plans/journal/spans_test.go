package journal

import (
	"maps"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestTheStopwatchSumsSpans(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	j := &Journal{}
	j.Enter(plans.Detaching, at(0))
	if j.Stopwatch != nil || j.Arrive(at(1), Wave{}) != nil {
		t.Error("a wave whose beginning was not seen is measured")
	}
	wave := func(from int, lengths ...int) map[plans.Span]time.Duration {
		now := from
		for k, s := range plans.Spans() {
			j.Enter(s, at(now))
			j.Enter(s, at(now)) // a second look
			if left := j.Left(); !left.Equal(at(from)) {
				t.Errorf("in %s it has been away since %s, expected %s", s, left, at(from))
			}
			now += lengths[k]
		}
		return j.Arrive(at(now), Wave{Seq: from})
	}
	first := wave(10, 1, 2, 3, 4, 5)
	want := map[plans.Span]time.Duration{plans.Terminating: time.Second, plans.Detaching: 2 * time.Second, plans.HandingOver: 3 * time.Second, plans.Attaching: 4 * time.Second, plans.Starting: 5 * time.Second}
	if !maps.Equal(first, want) {
		t.Errorf("%v, expected %v", first, want)
	}
	wave(100, 3, 0, 1, 0, 1)
	if left := j.Left(); !left.IsZero() {
		t.Errorf("a wave that has arrived has been away since %s", left)
	}
	d := j.Downtime
	if d.Waves != 2 || d.Mean(plans.Terminating) != 2*time.Second || d.Longest[plans.Terminating].Duration != 3*time.Second || d.Longest[plans.Starting].Duration != 5*time.Second || d.Total[plans.HandingOver].Duration != 4*time.Second {
		t.Errorf("%+v", d)
	}
	// A reversed plan returns to an earlier span; a clock that goes back counts as zero.
	j.Enter(plans.Terminating, at(200))
	j.Enter(plans.Detaching, at(199))
	j.Enter(plans.Terminating, at(201))
	if took := j.Arrive(at(204), Wave{Seq: 204}); took[plans.Terminating] != 3*time.Second || took[plans.Detaching] != 2*time.Second {
		t.Errorf("%v", took)
	}
}
