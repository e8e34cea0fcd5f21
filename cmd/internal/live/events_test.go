package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/view"
	"github.com/stsmigrate/stsmigrate/internal/view/event"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

const schemaFile = "../../../docs/schemas/event.schema.json"

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func plan() *plans.Plan {
	return &plans.Plan{
		Name: "web", Count: 3, MaxUnavailable: 1, Window: 1,
		Source:      plans.Ref{Cluster: "a", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "b", Context: "west", Namespace: "shop", Name: "web"},
	}
}

// schema returns the published schema. With its formats, a time must be one.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *jsonschema.Schema, line string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// progress returns what a run reports, one of each kind.
func progress(p *plans.Plan) (all []engine.Progress) {
	leg := p.FirstLeg()
	leg.Lowest = 0
	for seq := 1; seq <= p.Length(leg); seq++ {
		step, _ := p.Step(leg, seq)
		took := &engine.Took{plans.Terminating: time.Second, plans.Starting: 2 * time.Second}
		for _, kind := range []engine.Kind{engine.Wrote, engine.Waiting, engine.Advanced} {
			all = append(all, engine.Progress{Kind: kind, Step: step, Reason: "a reason", Took: took})
		}
		all = append(all, engine.Progress{Kind: engine.Waiting, Overdue: true, Step: step, Reason: "overdue"})
	}
	return all
}

// Every event that a run or a watch makes is as the schema promises, and together they are of every type of the schema.
func TestEventsAreAsPublished(t *testing.T) {
	s, p := schema(t), plan()
	p.Gates = []plans.Gate{{}}
	var out bytes.Buffer
	show := &Show{Mode: JSON, Plan: p, Out: &out, Now: noon}
	for _, how := range progress(p) {
		show.Progress(nil, how, nil)
	}
	show.Progress(nil, engine.Progress{}, errors.New("connection refused\n\x1b[2J"))
	show.Complain(errors.New("timeout"))
	for _, how := range []engine.Progress{
		{Kind: engine.Blocked, Reason: "x"},
		{Kind: engine.Paused, Reason: "paused before web-1 Tighten"},
		{Kind: engine.Blocked, Overtaken: true},
		{Kind: engine.Finished, Outcome: plans.Moved},
		{Kind: engine.Finished, Outcome: plans.Aborted},
	} {
		show.End(how, stops.Remains{}, nil)
	}
	show.End(engine.Progress{}, stops.Remains{}, engine.ErrStopped)
	show.Stopping("stopping as soon as web-1 has arrived")
	show.End(engine.Progress{Kind: engine.Stopped, Reason: "stopped before web-1 Tighten"}, stops.Remains{}, engine.ErrStopped)
	left := metav1.NewTime(noon())
	show.End(engine.Progress{}, stops.Remains{InFlight: &engine.InFlight{Pods: "web-1", Since: &left, Down: []string{"web-1"}, Message: "web-1 is down"}}, engine.ErrStopped)
	for _, st := range moments(p) {
		show.Report(st)
	}
	seen := map[event.Type]bool{}
	for line := range strings.Lines(out.String()) {
		check(t, s, line)
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		seen[e.Type] = true
	}
	for _, want := range event.Types() {
		if !seen[want] {
			t.Errorf("no event of type %s was made", want)
		}
	}
}

// The schema has the types and states of the program, and refuses what is no event.
func TestTheSchemaIsThatOfTheProgram(t *testing.T) {
	raw, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Properties struct {
			Type  struct{ Examples []event.Type }
			Spans struct{ Properties map[plans.Span]any }
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	spans := slices.Sorted(maps.Keys(doc.Properties.Spans.Properties))
	if !slices.Equal(doc.Properties.Type.Examples, event.Types()) || !slices.Equal(spans, slices.Sorted(slices.Values(plans.AllSpans()))) {
		t.Errorf("types %v, spans %v", doc.Properties.Type.Examples, spans)
	}
	s := schema(t)
	good := `{"apiVersion":"stsmigrate.dev/v1alpha1","kind":"Event","type":"Wrote","time":"2026-01-02T12:00:00Z","plan":"web","message":"x"}`
	check(t, s, good)
	for _, change := range [][2]string{{"v1alpha1", "v2"}, {`"Event"`, `"Plan"`}, {"Wrote", "was written"}, {"2026-01-02T12:00:00Z", "12:00"}, {`"message":"x"`, `"text":"x"`}, {"Wrote", "Finished"}} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(good, change[0], change[1], 1)))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil {
			t.Errorf("it accepts %s for %s", change[1], change[0])
		}
	}
}

// at returns a moment of a plan. where has the places of the ordinals, highest first: s, d or - for neither.
func at(p *plans.Plan, seconds int, state, where string, change func(*engine.View, *journal.Journal)) Status {
	began := metav1.NewTime(noon())
	v := &engine.View{Timeline: journal.Timeline{Begun: &began}, Plan: p.Name, State: plans.State(state), MaxUnavailable: 1, Unavailable: new(int32), Holder: "laptop/1"}
	for i, c := range where {
		o := engine.OrdinalView{Ordinal: p.End() - 1 - int32(i), Source: "-", Destination: "-"}
		switch c {
		case 's':
			o.Source, o.Phase = "Ready", "on the source"
		case 'd':
			o.Destination, o.Phase = "Ready", "moved"
		case '?':
			o.Source, o.Destination, o.Phase = "?", "?", "?"
		default:
			o.Phase = "Vacate"
		}
		v.Ordinals = append(v.Ordinals, o)
	}
	j := journal.New(p)
	j.Epoch = 1
	if change != nil {
		change(v, j)
	}
	return Status{View: v, Journal: j, At: noon().Add(time.Duration(seconds) * time.Second)}
}

// begun makes the journal one that is at an operation of the wave of an ordinal.
func begun(p *plans.Plan, op plans.Op, ordinal int32) func(*engine.View, *journal.Journal) {
	return func(_ *engine.View, j *journal.Journal) {
		for seq := 1; ; seq++ {
			step, more := p.Step(j.Leg, seq)
			if !more || step.Op == op && step.Ordinals.Has(ordinal) {
				j.Done, j.Begun = seq-1, seq
				return
			}
		}
	}
}

// moments are those of a plan that is watched: one ordinal moves, and then the plan is blocked.
func moments(p *plans.Plan) []Status {
	away := func(v *engine.View, j *journal.Journal) {
		begun(p, plans.Vacate, 2)(v, j)
		v.ReasonID, v.Reason, v.Step = reasons.VolumeAttached, "volume pv-1 is still attached", "web-2 Vacate"
		j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
		j.Stopwatch = &journal.Stopwatch{Span: plans.Detaching, Since: metav1.NewMicroTime(noon().Add(3 * time.Second)), Took: map[plans.Span]metav1.Duration{plans.Terminating: {Duration: 2 * time.Second}}}
	}
	late := func(v *engine.View, j *journal.Journal) {
		away(v, j)
		v.Overdue = "volume pv-1 is still attached (for more than 10m)"
	}
	there := func(v *engine.View, j *journal.Journal) {
		v.Timeline.Waves = []journal.Wave{{Ordinals: plans.Slice{Start: 2, Replicas: 1}, To: plans.Destination, Left: metav1.NewMicroTime(noon().Add(3 * time.Second)), Took: []float64{2, 7}}}
		begun(p, plans.Tighten, 1)(v, j)
		j.Begun = j.Done
		sum := map[plans.Span]metav1.Duration{plans.Terminating: {Duration: 2 * time.Second}, plans.Detaching: {Duration: 7 * time.Second}}
		j.Downtime = &journal.Downtime{Waves: 1, Total: sum, Longest: sum}
	}
	stuck := func(v *engine.View, j *journal.Journal) {
		there(v, j)
		v.Reason, v.Holder, v.Next = "replicas is 5, expected 2", "", "`stsmigrate resume web`"
	}
	return []Status{
		at(p, 1, "Moving", "sss", nil), at(p, 5, "Moving", "-ss", away), at(p, 700, "Moving", "-ss", late), at(p, 710, "Moving", "dss", there),
		at(p, 720, "Blocked", "dss", stuck),
	}
}

// A watch has one line per event, with date and zone.
func TestAWatchPrintsOneLinePerEvent(t *testing.T) {
	p := plan()
	var out bytes.Buffer
	show := &Show{Mode: Lines, Plan: p, Out: &out, Now: noon}
	for _, st := range moments(p) {
		show.Report(st)
		show.Report(st) // nothing new
	}
	want := `2026-01-02T12:00:01.000Z                   Moving: 0 of 3 on the destination, unavailable 0 of 1 allowed
2026-01-02T12:00:05.000Z  web-2 Vacate     waiting: volume pv-1 is still attached [VolumeAttached]
2026-01-02T12:11:40.000Z  web-2 Vacate     overdue: volume pv-1 is still attached (for more than 10m)
2026-01-02T12:11:50.000Z  web-2 Grow       available on the destination
2026-01-02T12:12:00.000Z                   Blocked: 1 of 3 on the destination, unavailable 0 of 1 allowed
2026-01-02T12:12:00.000Z                   blocked: replicas is 5, expected 2
`
	got := out.String()
	if twice := strings.Index(got, "blocked: replicas"); twice >= 0 {
		got = got[:twice+len("blocked: replicas is 5, expected 2\n")] // a watch ends there
	}
	if got != want {
		t.Errorf("got\n%sexpected\n%s", got, want)
	}
}

// The view shows what the watch has learned: the spans of a wave that has arrived are those that the sums have grown by.
func TestTheViewKnowsWhatItHasSeen(t *testing.T) {
	p, h := plan(), NewHistory()
	var seen []view.Migration
	for _, st := range moments(p) {
		h.Learn(st)
		seen = append(seen, Migration(p, st, h))
	}
	away, there, stuck := seen[1], seen[3], seen[4]
	for name, c := range map[string]struct{ got, want any }{
		"in flight":       {away.Ordinals[0], view.Ordinal{Ordinal: 2, Source: "-", Destination: "-", Phase: "Vacate", Spans: view.Spans{2 * time.Second}, Running: plans.Detaching, RunningSince: noon().Add(3 * time.Second), Since: noon().Add(5 * time.Second)}},
		"it waits":        {away.Wait, view.Wait{Pods: "web-2", Reason: "volume pv-1 is still attached [VolumeAttached]", Since: noon().Add(3 * time.Second)}},
		"none has come":   {[]int{away.Arrived, away.WavesLeft}, []int{0, 3}},
		"arrived":         {there.Ordinals[0], view.Ordinal{Ordinal: 2, Source: "-", Destination: "Ready", Phase: view.Arrived, Spans: view.Spans{2 * time.Second, 7 * time.Second}, Since: noon().Add(710 * time.Second)}},
		"one has come":    {[]int{there.Arrived, there.WavesLeft}, []int{1, 2}},
		"usual":           {there.Usual, view.Spans{2 * time.Second, 7 * time.Second}},
		"places":          {[]string{there.Source, there.SourceName}, []string{"shop@east", "east"}},
		"elapsed":         {there.Elapsed(), 710 * time.Second},
		"blocked":         {stuck.Wait, view.Wait{Reason: "replicas is 5, expected 2"}},
		"not under way":   {stuck.Ordinals[1].Phase, view.Queued},
		"nobody moves it": {stuck.Active, false},
		"next":            {stuck.Next, "`stsmigrate resume web`"},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What no process carries on grows in no span: its clock stands where the last process has ended.
func TestAWaveThatNobodyCarriesOnStands(t *testing.T) {
	p := plan()
	st := at(p, 3600, "StoppedInFlight", "-ss", func(v *engine.View, j *journal.Journal) {
		begun(p, plans.Vacate, 2)(v, j)
		v.Holder = ""
		j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
		j.Leave(noon())
		j.Enter(plans.Detaching, noon().Add(2*time.Second))
		j.Halt(noon().Add(9 * time.Second))
	})
	o := Migration(p, st, NewHistory()).Ordinals[0]
	if o.Spans != (view.Spans{2 * time.Second, 7 * time.Second}) || o.Running != plans.Detaching || !o.RunningSince.IsZero() {
		t.Errorf("%+v", o)
	}
}

// Of a plan that goes back, those have arrived that are on the source again.
func TestAPlanThatGoesBack(t *testing.T) {
	p := plan()
	st := at(p, 1, "Aborting", "d-s", func(v *engine.View, j *journal.Journal) {
		j.Leg = plans.Leg{Direction: plans.Abort, First: 1, Lowest: 1, End: 3}
		begun(p, plans.Vacate, 1)(v, j)
	})
	m := Migration(p, st, NewHistory())
	if m.To != plans.Source || m.Arrived != 1 || m.WavesLeft != 2 || m.Ordinals[0].Phase != view.Queued || m.Ordinals[1].Phase != "Vacate" || m.Ordinals[2].Phase != view.Arrived {
		t.Errorf("%+v", m)
	}
}

// Of a plan that goes back, nothing has arrived that could not be read.
func TestWhatCannotBeReadHasNotArrived(t *testing.T) {
	p := plan()
	for _, d := range []plans.Direction{plans.Move, plans.Abort} {
		m := Migration(p, at(p, 1, "Aborting", "???", func(_ *engine.View, j *journal.Journal) { j.Leg.Direction = d }), NewHistory())
		if m.Arrived != 0 || m.Ordinals[1].Phase != view.Queued {
			t.Errorf("%s: %d have arrived, expected 0: %+v", d, m.Arrived, m.Ordinals)
		}
	}
}

// Where a plan turns, and after a time in which nothing could be read, a watch reports what has moved since, and not what
// was there before.
func TestAWatchReportsOnlyWhatHasMoved(t *testing.T) {
	p := plan()
	back := func(op plans.Op, ordinal int32) func(*engine.View, *journal.Journal) {
		return func(v *engine.View, j *journal.Journal) {
			j.Leg = plans.Leg{Direction: plans.Abort, First: 1, Lowest: 1, End: 3}
			begun(p, op, ordinal)(v, j)
		}
	}
	var out bytes.Buffer
	show := &Show{Mode: Lines, Plan: p, Out: &out, Now: noon}
	for k, m := range []struct {
		where  string
		change func(*engine.View, *journal.Journal)
		want   []string // the pods that have arrived since
	}{
		{"dss", nil, nil},
		{"???", nil, nil},
		{"dds", nil, []string{"web-1"}},
		{"dds", back(plans.Tighten, 1), nil},
		{"???", back(plans.Tighten, 2), nil},
		{"dss", back(plans.Tighten, 2), []string{"web-1"}},
		{"sss", back("", 0), []string{"web-2"}},
	} {
		out.Reset()
		show.Report(at(p, k, "Moving", m.where, m.change))
		var got []string
		for line := range strings.Lines(out.String()) {
			if words := strings.Fields(line); strings.Contains(line, "available on") {
				got = append(got, words[1])
			}
		}
		if !slices.Equal(got, m.want) {
			t.Errorf("moment %d: %v have arrived, expected %v", k, got, m.want)
		}
	}
}
