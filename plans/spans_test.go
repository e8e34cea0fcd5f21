package plans

import (
	"maps"
	"testing"
	"time"
)

func TestTheStopwatchSumsSpans(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	j := &Journal{}
	j.Enter(Detaching, at(0))
	if j.Stopwatch != nil || j.Arrive(at(1)) != nil {
		t.Error("a wave whose beginning was not seen is measured")
	}
	wave := func(from int, lengths ...int) map[Span]time.Duration {
		now := from
		for k, s := range Spans() {
			j.Enter(s, at(now))
			j.Enter(s, at(now)) // a second look
			if left := j.Left(); !left.Equal(at(from)) {
				t.Errorf("in %s it has been away since %s, expected %s", s, left, at(from))
			}
			now += lengths[k]
		}
		return j.Arrive(at(now))
	}
	first := wave(10, 1, 2, 3, 4, 5)
	want := map[Span]time.Duration{Terminating: time.Second, Detaching: 2 * time.Second, HandingOver: 3 * time.Second, Attaching: 4 * time.Second, Starting: 5 * time.Second}
	if !maps.Equal(first, want) {
		t.Errorf("%v, expected %v", first, want)
	}
	wave(100, 3, 0, 1, 0, 1)
	if left := j.Left(); !left.IsZero() {
		t.Errorf("a wave that has arrived has been away since %s", left)
	}
	d := j.Downtime
	if d.Waves != 2 || d.Mean(Terminating) != 2*time.Second || d.Longest[Terminating].Duration != 3*time.Second || d.Longest[Starting].Duration != 5*time.Second || d.Total[HandingOver].Duration != 4*time.Second {
		t.Errorf("%+v", d)
	}
	// A reversed plan returns to an earlier span; a clock that goes back counts as zero.
	j.Enter(Terminating, at(200))
	j.Enter(Detaching, at(199))
	j.Enter(Terminating, at(201))
	if took := j.Arrive(at(204)); took[Terminating] != 3*time.Second || took[Detaching] != 2*time.Second {
		t.Errorf("%v", took)
	}
}
