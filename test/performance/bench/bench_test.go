package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/test/internal/witness"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// at returns a moment of the made-up move, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// spans returns the spans of two ordinals. Ordinal 1 moves first.
func spans() map[int32]witness.Span {
	return map[int32]witness.Span{
		1: {SourceDeleting: at(110), SourceGone: at(1110), DestinationCreated: at(1150), DestinationRunning: at(1650), DestinationReady: at(3150)},
		0: {SourceDeleting: at(3250), SourceGone: at(3350), DestinationCreated: at(3400), DestinationRunning: at(3450), DestinationReady: at(3500)},
	}
}

func TestOverheadLeavesOutThePodsOwnTime(t *testing.T) {
	passages, err := passagesOf(at(100), spans(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	var overheads, down []time.Duration
	for _, p := range passages {
		overheads = append(overheads, p.overhead())
		down = append(down, p.down())
	}
	if diff := cmp.Diff([]time.Duration{ms(50), ms(150)}, overheads); diff != "" {
		t.Errorf("overheads of ordinals 1 and 0 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{ms(3040), ms(250)}, down); diff != "" {
		t.Errorf("time on neither side (-want +got):\n%s", diff)
	}
}

// A wave costs what is outside of the time from the first pod that stops to the last that is gone, and
// from the first that is created to the last that is Ready.
func TestAWaveIsOnePassage(t *testing.T) {
	passages, err := passagesOf(at(0), map[int32]witness.Span{
		2: {SourceDeleting: at(10), SourceGone: at(20), DestinationCreated: at(60), DestinationRunning: at(70), DestinationReady: at(80)},
		1: {SourceDeleting: at(21), SourceGone: at(30), DestinationCreated: at(50), DestinationRunning: at(52), DestinationReady: at(55)},
		0: {SourceDeleting: at(83), SourceGone: at(84), DestinationCreated: at(87), DestinationRunning: at(88), DestinationReady: at(89)},
	}, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := []passage{
		{wave{1, 2}, at(0), witness.Span{SourceDeleting: at(10), SourceGone: at(30), DestinationCreated: at(50), DestinationRunning: at(70), DestinationReady: at(80)}},
		{wave{0, 0}, at(80), witness.Span{SourceDeleting: at(83), SourceGone: at(84), DestinationCreated: at(87), DestinationRunning: at(88), DestinationReady: at(89)}},
	}
	if diff := cmp.Diff(want, passages, cmp.AllowUnexported(passage{}, wave{})); diff != "" {
		t.Errorf("passages (-want +got):\n%s", diff)
	}
	if got := passages[0].overhead(); got != ms(30) {
		t.Errorf("overhead of the first wave: %s, want 30 ms", got)
	}
	if got := []string{passages[0].String(), passages[1].String()}; got[0] != "1..2" || got[1] != "0" {
		t.Errorf("the waves are called %q", got)
	}
}

func TestRefusesAMoveThatWasNotSeenInFull(t *testing.T) {
	for name, spoil := range map[string]func(*witness.Span){
		"a pod that was never deleted":       func(s *witness.Span) { s.SourceDeleting = time.Time{} },
		"a pod that was never ready":         func(s *witness.Span) { s.DestinationReady = time.Time{} },
		"a pod that never ran":               func(s *witness.Span) { s.DestinationRunning = time.Time{} },
		"a pod that came before it had gone": func(s *witness.Span) { s.DestinationCreated = at(3300) },
	} {
		t.Run(name, func(t *testing.T) {
			all := spans()
			s := all[0]
			spoil(&s)
			all[0] = s
			if _, err := passagesOf(at(100), all, 2, 1); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	twenty := make([]time.Duration, 20)
	for i := range twenty {
		twenty[i] = ms(20 - i)
	}
	for name, c := range map[string]struct {
		values []time.Duration
		want   summary
	}{
		"none":     {nil, summary{}},
		"one":      {[]time.Duration{ms(7)}, summary{ms(7), ms(7), ms(7), ms(7)}},
		"unsorted": {[]time.Duration{ms(3), ms(1), ms(2)}, summary{ms(2), ms(3), ms(3), ms(3)}},
		"even":     {twenty, summary{ms(10) + 500*time.Microsecond, ms(18), ms(20), ms(20)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarize(c.values); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestStartOfTheFirstOrdinal(t *testing.T) {
	for name, c := range map[string]struct {
		lines []line
		want  time.Time
	}{
		"stsmigrate": {[]line{
			{at(1), "2026-11-25T10:00:00.001Z  web-1 Protect       volume a of claim data-web-1: reclaim policy Delete -> Retain"},
			{at(2), "2026-11-25T10:00:00.002Z  web-1 Tighten    source: PodDisruptionBudget web: maxUnavailable 1 -> 0"},
		}, at(1)},
		"the script": {[]line{
			{at(1), "statefulset.apps/web patched"}, {at(2), "prepared"}, {at(3), "web-1 tighten the budget"},
		}, at(2)},
		"not the wave of that ordinal": {[]line{{at(1), "prepared"}, {at(2), "2026-11-25T10:00:00.002Z  web-1..2 Tighten    source"}}, time.Time{}},
		"nothing before it":            {[]line{{at(3), "web-1 tighten the budget"}}, time.Time{}},
		"another ordinal":              {[]line{{at(1), "prepared"}, {at(3), "web-11 tighten the budget"}}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := startOf(c.lines, "1")
			if !got.Equal(c.want) || (err != nil) != c.want.IsZero() {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestStretchesAddUpToTheOverhead(t *testing.T) {
	passages, err := passagesOf(at(100), spans(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	lines := []line{
		{at(3140), "2026-11-25T10:00:03.140Z  web-1 Grow       waiting: pod web-1 is not Ready"},
		{at(3160), "2026-11-25T10:00:03.160Z  web-1 Grow       available on the destination"},
		{at(3190), "2026-11-25T10:00:03.190Z  web-1 Relax      source: PodDisruptionBudget web: 0 -> 1"},
		{at(3200), "2026-11-25T10:00:03.200Z  web-0 Tighten    source: PodDisruptionBudget web: 1 -> 0"},
		{at(3205), "2026-11-25T10:00:03.205Z  web-0 Tighten    waiting: the controller"},
		{at(3240), "2026-11-25T10:00:03.240Z  web-0 Shrink     source: StatefulSet web: [0] -> []"},
		{at(3260), "2026-11-25T10:00:03.260Z  web-0 Vacate     waiting: pod web-0 is terminating"},
		{at(3355), "2026-11-25T10:00:03.355Z  web-0 Vacate     free: pod and volumes have left the source"},
		{at(3390), "2026-11-25T10:00:03.390Z  web-0 Grow       destination: StatefulSet web: [1] -> [0..1]"},
		{at(3450), "2026-11-25T10:00:03.450Z  web-0 Grow       waiting: pod web-0 is not Ready"},
	}
	calls := []traffic.Call{
		{Verb: "get", Resource: "pods", At: at(3155), Took: ms(4)},
		{Verb: "update", Resource: "leases", At: at(3156), Took: ms(4)},
		{Verb: "list", Resource: "pods", At: at(3206), Took: ms(4)},
		{Verb: "get", Resource: "pods", At: at(3300), Took: ms(4)},
	}
	want := map[part]spent{
		{"Grow" + before, noticed}:  {ms(10), ms(4), 1},
		{"Relax" + before, working}: {ms(30), 0, 0},
		{"Tighten", working}:        {ms(15), 0, 0},
		{"Tighten", awaited}:        {ms(35), ms(4), 1},
		{"Shrink", obeyed}:          {ms(10), 0, 0},
		{"Vacate", noticed}:         {ms(5), 0, 0},
		{"Grow", working}:           {ms(35), 0, 0},
		{"Grow", obeyed}:            {ms(10), 0, 0},
	}
	got := passages[1].stretches(lines, calls)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(part{}, spent{})); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	var sum time.Duration
	for _, s := range got {
		sum += s.took
	}
	if sum != passages[1].overhead() {
		t.Errorf("the parts add up to %s, the overhead is %s", sum, passages[1].overhead())
	}
}

func TestTables(t *testing.T) {
	passages, err := passagesOf(at(100), spans(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := passagesOf(at(-900), spans(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := `OVERHEAD PER ORDINAL   MEDIAN    P90       MAX
stsmigrate             0.100 s   0.150 s   0.150 s
by hand, kubectl       0.600 s   1.050 s   1.050 s
ratio                  0.17      0.14      0.14

ON NEITHER SIDE BEYOND STOP AND START   MEDIAN    P90       MAX
stsmigrate                              0.045 s   0.050 s   0.050 s
by hand, kubectl                        0.045 s   0.050 s   0.050 s

POD ON NEITHER SIDE   MEDIAN    P90       MAX
stsmigrate            1.645 s   3.040 s   3.040 s
by hand, kubectl      1.645 s   3.040 s   3.040 s
`
	if diff := cmp.Diff(want, overheadTable(passages, slow)); diff != "" {
		t.Errorf("overheads (-want +got):\n%s", diff)
	}
	var calls []traffic.Call
	for range 33 {
		calls = append(calls, traffic.Call{Verb: "update", Resource: "configmaps", Kind: traffic.Write})
	}
	calls = append(calls, traffic.Call{Verb: "get", Resource: "pods"}, traffic.Call{Verb: "create", Resource: "statefulsets", Kind: traffic.Trial})
	want = `API WRITES                   APPLY   PER ORDINAL   FINALIZE   PER ORDINAL
configmaps                   33      16.5          0          0.0
leases                       0       0.0           1          0.5
all                          33      16.5          1          0.5
not writes: access reviews   0       0.0           0          0.0
not writes: dry runs         1       0.5           0          0.0
not writes: reads            1       0.5           0          0.0
`
	got := writeTable(&counts{apply: calls, finalize: []traffic.Call{{Verb: "delete", Resource: "leases", Kind: traffic.Write}}}, 2)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestAGoalThatIsMissedIsAnError(t *testing.T) {
	table, err := goalTable([]goal{{"reads", 25, 25, "%.1f"}, {"writes", 10.5, 10, "%.1f"}, {"share", math.NaN(), 1, "%.2f"}})
	want := `GOAL     AT MOST   HERE
reads    25.0      25.0   met
writes   10.0      10.5   MISSED
share    1.00      NaN    MISSED
`
	if diff := cmp.Diff(want, strings.ReplaceAll(table, "HERE   \n", "HERE\n")); diff != "" {
		t.Errorf("goals (-want +got):\n%s", diff)
	}
	if err == nil || err.Error() != "missed: writes; share" {
		t.Errorf("%v", err)
	}
	if _, err := goalTable([]goal{{"reads", 25, 25, "%.1f"}}); err != nil {
		t.Error(err)
	}
}

func TestClockKeepsLinesWhole(t *testing.T) {
	var c clock
	for _, s := range []string{"one\ntw", "o\n", "thr"} {
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if len(c.lines) != 2 || c.lines[0].text != "one" || c.lines[1].text != "two" || c.lines[0].at.After(c.lines[1].at) {
		t.Errorf("lines: %+v", c.lines)
	}
}
