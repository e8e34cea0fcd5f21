package journal

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	if d.Waves != 2 || d.Usual(plans.Terminating) != 2*time.Second || d.Longest[plans.Terminating].Duration != 3*time.Second || d.Longest[plans.Starting].Duration != 5*time.Second || d.Total[plans.HandingOver].Duration != 4*time.Second {
		t.Errorf("%+v", d)
	}
	// A reversed plan returns to an earlier span; a clock that goes back counts as zero.
	j.Enter(plans.Terminating, at(200))
	j.Enter(plans.Detaching, at(199))
	j.Enter(plans.Terminating, at(201))
	j.Enter(plans.Attaching, at(204))
	if took := j.Arrive(at(204), Wave{Seq: 204}); took[plans.Terminating] != 3*time.Second || took[plans.Detaching] != 2*time.Second {
		t.Errorf("%v", took)
	}
}

// away returns a journal with a wave that was removed at second 0 and is in a span since a second.
func away(at func(int) time.Time, span plans.Span, since int) *Journal {
	j := &Journal{}
	j.Leave(at(0))
	j.Enter(span, at(since))
	return j
}

func seconds(t *testing.T) func(int) time.Time {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
}

// The time in which no process carried a wave on belongs to no span, however the process before ended.
func TestTheTimeWithoutAProcessIsNobodys(t *testing.T) {
	at := seconds(t)
	for name, c := range map[string]struct {
		end                  func(j *Journal)
		sign                 time.Time
		detach, nobody, left int
	}{
		"it recorded its end":                             {func(j *Journal) { j.Halt(at(5)) }, at(7), 2 + 5, 45, 0},
		"it died, and its Lease says when":                {func(*Journal) {}, at(6), 3 + 5, 44, 0},
		"it died, and nothing says when":                  {func(*Journal) {}, time.Time{}, 0 + 5, 47, 0},
		"a sign from before the record, by another clock": {func(*Journal) {}, at(1), 0 + 5, 47, 0},
		"a sign from after the takeover":                  {func(*Journal) {}, at(99), 47 + 5, 0, 0},
	} {
		j := away(at, plans.Detaching, 3)
		c.end(j)
		j.Resume(at(50).Add(123456*time.Nanosecond), c.sign) // what is stored is less exact, and adds up nevertheless
		if !j.Left().Equal(at(0)) {
			t.Errorf("%s: it left at %s, expected %s", name, j.Left(), at(0))
		}
		j.Enter(plans.Attaching, at(55))
		took := j.Arrive(at(56), Wave{Seq: 7})
		want := map[plans.Span]time.Duration{plans.Terminating: 3 * time.Second, plans.Detaching: time.Duration(c.detach) * time.Second, plans.HandingOver: 0, plans.Attaching: time.Second, plans.Starting: 0}
		if c.nobody > 0 {
			want[plans.Unattended] = time.Duration(c.nobody) * time.Second
		}
		if !maps.Equal(took, want) {
			t.Errorf("%s: %v, expected %v", name, took, want)
		}
		if w := j.Timeline.Waves[0]; !w.Arrived().Equal(at(56)) || w.Span(plans.Unattended) != want[plans.Unattended] {
			t.Errorf("%s: %+v", name, w)
		}
		if d := j.Downtime; d.PerWave() != time.Duration(4+c.detach)*time.Second || d.Total[plans.Unattended].Duration != want[plans.Unattended] {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A pod that came up while nobody was there has taken its time, and the rest is no downtime at all.
func TestAPodThatCameUpAloneHasItsOwnTime(t *testing.T) {
	at := seconds(t)
	j := away(at, plans.Attaching, 3)
	j.Halt(at(4))
	j.Resume(at(50), time.Time{})
	if took := j.Arrive(at(6), Wave{Seq: 7}); took[plans.Attaching] != 3*time.Second || took[plans.Unattended] != 0 {
		t.Errorf("%v", took)
	}
	if w := j.Timeline.Waves[0]; !w.Arrived().Equal(at(6)) || len(w.Gaps) != 0 {
		t.Errorf("%+v", w)
	}
	j = away(at, plans.Attaching, 3)
	j.Resume(at(20), at(10))
	j.Resume(at(50), at(30))
	if took := j.Arrive(at(35), Wave{Seq: 7}); took[plans.Attaching] != 22*time.Second || took[plans.Unattended] != 10*time.Second || !j.Timeline.Waves[0].Arrived().Equal(at(35)) {
		t.Errorf("%v, %+v", took, j.Timeline.Waves)
	}
}

// Many stops of one wave are one long one at the end: the journal stays small.
func TestTheGapsOfAWaveAreBounded(t *testing.T) {
	at := seconds(t)
	j := away(at, plans.Detaching, 1)
	for k := range 20 {
		j.Halt(at(10*k + 5))
		j.Resume(at(10*k+10), time.Time{})
	}
	j.Enter(plans.Attaching, at(201))
	if took := j.Arrive(at(202), Wave{Seq: 7}); took[plans.Unattended] != 100*time.Second || took[plans.Detaching] != 100*time.Second || len(j.Timeline.Waves[0].Gaps) != maxGaps {
		t.Errorf("%v, %+v", took, j.Timeline.Waves)
	}
}

// A wave that was asked to leave and never left, since the write was refused, has no downtime.
func TestAWaveThatNeverLeftHasNoDowntime(t *testing.T) {
	at := seconds(t)
	j := &Journal{}
	j.Leave(at(0))
	if took := j.Arrive(at(69), Wave{Seq: 7}); took != nil || j.Downtime != nil || len(j.Timeline.Waves) != 0 || !j.Left().IsZero() {
		t.Errorf("%v, %+v", took, j)
	}
	j.Leave(at(0))
	if j.Stay(); !j.Left().IsZero() {
		t.Error("it is away since", j.Left())
	}
}

// What is usual is the median: one wave that took long does not move it, and stays shown as the longest.
func TestTheUsualTimeIsTheMedian(t *testing.T) {
	at := seconds(t)
	j := &Journal{}
	for k, took := range []int{3, 4, 600, 3, 5} {
		j.Leave(at(0))
		j.Enter(plans.Attaching, at(took))
		j.Arrive(at(took+1), Wave{Seq: k + 1})
		if k == 0 {
			if got := j.Downtime.Forecast(5); got != "the first took 4.0s, so about 20s left" {
				t.Error(got)
			}
		}
	}
	d := j.Downtime
	if d.Usual(plans.Terminating) != 4*time.Second || d.PerWave() != 5*time.Second || d.Longest[plans.Terminating].Duration != 600*time.Second {
		t.Errorf("%s", d)
	}
	if got := d.Forecast(4); got != "about 20s left (usually 5.0s per wave)" || d.Forecast(0) != "" || (*Downtime)(nil).Forecast(4) != "" {
		t.Error(got)
	}
	for k := range 40 {
		j.Leave(at(0))
		j.Enter(plans.Attaching, at(8))
		j.Arrive(at(9), Wave{Seq: k + 10})
	}
	if len(j.Downtime.Lasts) != maxLasts || j.Downtime.Usual(plans.Terminating) != 8*time.Second {
		t.Errorf("%+v", j.Downtime)
	}
	old := &Downtime{Waves: 2, Total: map[plans.Span]metav1.Duration{plans.Detaching: {Duration: 8 * time.Second}}} // of an earlier version
	if old.Usual(plans.Detaching) != 4*time.Second {
		t.Errorf("%s", old)
	}
}

// What is measured of a wave that is away says what is nobody's, also while nobody has come yet.
func TestAWaveThatNobodyCarriesOnIsMeasuredSo(t *testing.T) {
	at := seconds(t)
	j := away(at, plans.Detaching, 3)
	if took := j.Stopwatch.Until(at(10), true); took[plans.Detaching] != 7*time.Second || took[plans.Unattended] != 0 {
		t.Errorf("%v", took)
	}
	if took := j.Stopwatch.Until(at(10), false); took[plans.Detaching] != 0 || took[plans.Unattended] != 7*time.Second {
		t.Errorf("%v", took)
	}
	j.Halt(at(5))
	if took := j.Stopwatch.Until(at(10), false); took[plans.Detaching] != 2*time.Second || took[plans.Unattended] != 5*time.Second {
		t.Errorf("%v", took)
	}
}
