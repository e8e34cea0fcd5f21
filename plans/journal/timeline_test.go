package journal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func waveAt(seq int, ordinal int32) Wave {
	left := time.Date(2026, 1, 1, 0, seq, 0, 0, time.UTC)
	return Wave{Seq: seq, Ordinals: plans.Slice{Start: ordinal, Replicas: 1}, To: plans.Destination, Left: metav1.NewMicroTime(left), Took: []float64{1, 0, 0.5, 0, 2}, Nodes: [][2]string{{"node-a", "node-b"}}, Epoch: 1, By: "host/1"}
}

func TestAWaveSaysWhenItHasArrived(t *testing.T) {
	w := waveAt(7, 2)
	w.Took = []float64{1, 0, 0.5, 0, 2}
	if got := w.Arrived().Sub(w.Left.Time); got != 3500*time.Millisecond {
		t.Errorf("it was away for %s", got)
	}
	if w.Span(plans.HandingOver) != 500*time.Millisecond || w.Span("none") != 0 || (Wave{}).Span(plans.Starting) != 0 {
		t.Errorf("%+v", w)
	}
}

// Entries that are in the journal and in the ConfigMap are shown once: the process died between the two writes.
func TestTimelinesMergeWithoutDoubles(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var early, late Timeline
	early.Begun = &metav1.Time{Time: now}
	early.arrived(waveAt(9, 1))
	early.Record(now, Event{Kind: Requested, By: "anna", What: "Move"})
	late = early
	late.arrived(waveAt(17, 0))
	late.arrived(waveAt(17, 0)) // seen again
	late.Record(now.Add(time.Minute), Event{Kind: LegEnded, By: "host/1", What: "Moved"})
	if len(early.Waves) != 1 || len(early.Events) != 1 {
		t.Errorf("the first timeline was changed: %+v", early)
	}
	for _, got := range []Timeline{early.Merge(late), late.Merge(early), late.Merge(late)} {
		if len(got.Waves) != 2 || got.Waves[0].Seq != 9 || len(got.Events) != 2 || got.Events[1].What != "Moved" || got.Begun == nil {
			t.Errorf("%+v", got)
		}
	}
	if rest := late.Emptied(); rest.Begun == nil || len(rest.Events)+len(rest.Waves) > 0 || rest.Full() {
		t.Errorf("%+v", rest)
	}
}

// The timeline of a journal has a bounded size whatever it is told, and says how much it has dropped.
func TestATimelineIsBounded(t *testing.T) {
	var line Timeline
	for seq := 1; seq <= 2000; seq++ {
		line.arrived(waveAt(seq, int32(seq)))
		line.Record(time.Unix(int64(seq), 0), Event{Kind: PlanBlocked, By: "host/1", What: strings.Repeat("ä", 5000)})
	}
	if size := line.size(); size > hardTimelineBytes || size < hardTimelineBytes/2 || line.Omitted+len(line.Waves)+len(line.Events) != 4000 {
		t.Errorf("%d bytes, %d waves, %d events, %d omitted", size, len(line.Waves), len(line.Events), line.Omitted)
	}
	if last := line.Waves[len(line.Waves)-1]; last.Seq != 2000 || len(line.Events) == 0 {
		t.Errorf("the newest entries were dropped: the last is %d", last.Seq)
	}
}

// A timeline that cannot be is left out: it decides nothing, and a wave may be in flight.
func TestABrokenTimelineDoesNotStopAPlan(t *testing.T) {
	p := planstest.Three()
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]func(*Wave){
		"ordinals":  func(w *Wave) { w.Ordinals.Start = 1000 },
		"step":      func(w *Wave) { w.Seq = 0 },
		"side":      func(w *Wave) { w.To = "nowhere" },
		"spans":     func(w *Wave) { w.Took = w.Took[:4] },
		"negative":  func(w *Wave) { w.Took = []float64{-1, 0, 0, 0, 0} },
		"nodes":     func(w *Wave) { w.Nodes = append(w.Nodes, w.Nodes...) },
		"gap":       func(w *Wave) { w.Gaps = []Gap{{Seconds: -1}} },
		"gaps":      func(w *Wave) { w.Gaps = make([]Gap, maxGaps+1) },
		"unchanged": func(*Wave) {},
	} {
		j := New(p)
		w := waveAt(5, p.Start)
		broken(&w)
		j.Timeline.Waves = []Wave{w}
		raw, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(raw, p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if kept := len(got.Timeline.Waves) == 1; kept != (name == "unchanged") || !kept && got.Timeline.Omitted == 0 {
			t.Errorf("%s: %+v", name, got.Timeline)
		}
	}
}

// A wave whose write was refused has not left: it is measured from the write that was accepted.
func TestAWaveIsMeasuredFromItsLastAttempt(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := &Journal{}
	j.Leave(start)
	j.Leave(start.Add(time.Hour))
	j.Enter(plans.Attaching, start.Add(time.Hour+time.Second))
	if took := j.Arrive(start.Add(time.Hour+time.Second), Wave{Seq: 5}); took[plans.Terminating] != time.Second || !j.Timeline.Waves[0].Left.Time.Equal(start.Add(time.Hour)) {
		t.Errorf("%v, %+v", took, j.Timeline.Waves)
	}
}

// The answers of the checks have their room: neither many nor long findings make a timeline that cannot be kept.
func TestTheAnswersOfChecksAreBounded(t *testing.T) {
	var checked Checked
	for range 100 {
		checked.Add(Found{Check: "images", What: strings.Repeat("a", 10000)})
	}
	timeline := Timeline{Checks: &checked}
	for k := range 1000 {
		timeline.arrived(waveAt(k+1, 1))
	}
	if checked.Omitted != 100-maxFound || timeline.size() > hardTimelineBytes || timeline.Checks == nil {
		t.Errorf("%d omitted, %d bytes", checked.Omitted, timeline.size())
	}
	stored := timeline.Merge(Timeline{})
	if left := timeline.Emptied(); left.Checks != nil || !left.Stored || stored.Merge(left).Checks == nil {
		t.Errorf("%+v", left)
	}
}

// A wave has the writes that were sent since the wave before it, and the next one begins anew.
func TestAWaveCountsItsWrites(t *testing.T) {
	timeline := Timeline{Sent: 12}
	w := waveAt(7, 2)
	w.Writes = 2
	timeline.arrived(w)
	timeline.arrived(w) // once
	timeline.Sent += 3
	timeline.arrived(waveAt(14, 1))
	if got := []int{timeline.Waves[0].Writes, timeline.Waves[1].Writes}; got[0] != 14 || got[1] != 3 || timeline.Sent != 0 {
		t.Errorf("%v, and %d are left", got, timeline.Sent)
	}
}
