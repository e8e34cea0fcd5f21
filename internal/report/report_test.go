package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

var update = flag.Bool("update", false, "write the golden files anew") //nolint:gochecknoglobals // a flag of the test

var start = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // read only

// moved returns a plan of five, of which three have moved: one before a night's pause, two after it. One has come back,
// and one is away.
func moved(t *testing.T) (*plans.Plan, *journal.Journal, journal.Timeline) {
	t.Helper()
	p := five()
	p.Made = &plans.Made{At: metav1.Time{Time: start.Add(-time.Hour)}, By: "anna"}
	var whole journal.Timeline
	whole.Begun = &metav1.Time{Time: start}
	whole.Record(start, journal.Event{Kind: journal.Requested, By: "anna", What: "Move"})
	whole.Record(start.Add(40*time.Second), journal.Event{Kind: journal.PlanBlocked, By: "host/1", What: `pod web-3 has <script>alert("it")</script> in the way`})
	whole.Record(start.Add(8*time.Hour), journal.Event{Kind: journal.Requested, By: "ben", What: "Move; vouched: node n1 is gone"})
	wave := func(seq int, ordinal int32, to plans.Side, at time.Duration) {
		whole.Waves = append(whole.Waves, journal.Wave{
			Seq: seq, Ordinals: plans.Slice{Start: ordinal, Replicas: 1}, To: to, Left: metav1.NewMicroTime(start.Add(at)),
			Took: []float64{4, 0.2, 0.1, 1, 6}, Nodes: [][2]string{{"node-a", "node-b"}}, Epoch: 1, By: "host/1", Writes: 14,
		})
	}
	whole.Checks = &journal.Checked{At: metav1.Time{Time: start}, Passed: []string{"kubernetes", "quota"}}
	whole.Checks.Add(journal.Found{Check: "images", What: `image <b>web</b>:latest may differ`, Ignored: true})
	wave(9, 4, plans.Destination, 10*time.Second)
	wave(17, 3, plans.Destination, 8*time.Hour)
	wave(25, 2, plans.Destination, 8*time.Hour+5*time.Second)
	wave(33, 4, plans.Source, 8*time.Hour+30*time.Second)
	j := journal.New(p)
	j.Epoch = 2
	j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 1, Replicas: 1}, From: plans.Source, Pods: []plans.Pod{{Ordinal: 1, Node: "node-a"}}}
	j.Leave(start.Add(8*time.Hour + time.Minute))
	return p, j, whole
}

func TestTheReportSaysHowManyWereAway(t *testing.T) {
	p, j, whole := moved(t)
	r := New(p, j, whole, errors.New("a reason"), true, start.Add(8*time.Hour+70*time.Second))
	if r.Peak != 2 || len(r.Waves) != 5 || r.Untold != "a reason" || r.still() != 1 {
		t.Errorf("%+v", r)
	}
	var counts []int32
	for _, l := range r.Away {
		counts = append(counts, l.Count)
	}
	if !slices.Equal(counts, []int32{1, 0, 1, 2, 1, 0, 1, 0, 1}) {
		t.Errorf("away: %v", counts)
	}
	if !slices.Equal(r.Unrecorded, []int32{0}) {
		t.Errorf("without a record: %v", r.Unrecorded)
	}
	sum := r.Spans[len(r.Spans)-1]
	if sum.Name != Between || sum.Median < 11.29 || sum.Median > 11.31 || sum.Total < 45.1 || sum.Total > 45.3 {
		t.Errorf("%+v", r.Spans)
	}
}

// Where a place was taken is in the report, and that a pod came elsewhere is said beside its node.
func TestTheReportSaysWhereThePlacesWere(t *testing.T) {
	p, j, whole := moved(t)
	whole.Waves[0].Places, whole.Waves[1].Places = []string{"node-c"}, []string{"node-b"}
	whole.Waves[0].Seen = []string{"reached 2 of 3, not <b>:1"}
	j.Timeline.Placed = []plans.Placed{{Ordinal: 1, Node: "node-d", Reached: "3 of 3", Clock: "its clock is behind"}}
	r := New(p, j, whole, nil, true, start.Add(8*time.Hour+70*time.Second))
	for k, want := range []string{"node-b (its place: node-c)", "node-b", "node-b"} {
		if got := r.Waves[k].Reached(); !slices.Equal(got, []string{want}) {
			t.Errorf("wave %d reached %q, expected %q", k, got, want)
		}
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "its place: node-c") {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"<td>reached 2 of 3, not &lt;b&gt;:1</td>", "<td>reached 3 of 3; its clock is behind</td>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("expected %q in the page", want)
		}
	}
	if last := r.Waves[4]; !slices.Equal(last.Places, []string{"node-d"}) || r.Waves[2].Seen != nil {
		t.Errorf("%+v", last)
	}
}

func TestTheReportHasTheWaveUnderWay(t *testing.T) {
	p, j, whole := moved(t)
	r := New(p, j, whole, nil, true, start.Add(8*time.Hour+70*time.Second))
	last := r.Waves[4]
	if last.Arrived != nil || last.Seconds[plans.Terminating] != 10 || last.From[0] != "node-a" {
		t.Errorf("the wave under way is %+v", last)
	}
}

// A time in which no process carried a wave on has a bar of its own within that of the span, and is no part of one. So is
// it while the wave still waits for somebody.
func TestTheReportShowsWhatIsNobodys(t *testing.T) {
	p, j, whole := moved(t)
	whole.Waves[1].Gaps = []journal.Gap{{From: metav1.NewMicroTime(whole.Waves[1].Left.Add(4500 * time.Millisecond)), Seconds: 40}}
	whole.Record(start.Add(8*time.Hour), journal.Event{Kind: journal.RunStopped, By: "laptop/1", What: "at web-3 Claim"})
	j.Halt(start.Add(8*time.Hour + 65*time.Second))
	r := New(p, j, whole, nil, false, start.Add(8*time.Hour+100*time.Second))
	w := r.Waves[1]
	if w.Seconds[plans.Unattended] != 40 || w.Seconds[plans.Attaching] != 1 || w.away() != 51300*time.Millisecond || !w.Arrived.Time.Equal(w.Left.Add(w.away())) {
		t.Errorf("%+v", w)
	}
	if last := r.Waves[4]; last.Seconds[plans.Terminating] != 5 || last.Seconds[plans.Unattended] != 35 || len(last.Gaps) != 1 {
		t.Errorf("the wave under way is %+v", last)
	}
	if n := len(r.Spans); r.Spans[n-2].Name != plans.Unattended || r.Spans[n-2].Longest != 40 || r.Spans[3].Longest != 1 {
		t.Errorf("%+v", r.Spans)
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "<td>Stopped</td><td>at web-3 Claim</td><td>laptop/1</td>") {
		t.Errorf("who has stopped it is not on the page: %v", err)
	}
	drawnApart(t, r.drawn())
}

func drawnApart(t *testing.T, d drawing) {
	t.Helper()
	var classes []string
	for _, b := range d.Bars {
		if strings.HasPrefix(b.Title, "ordinal 3") {
			classes = append(classes, b.Class)
		}
	}
	if !slices.Equal(classes, []string{"terminate", "detach", "handOver", "attach", "unattended", "attach", "ready"}) {
		t.Errorf("the bars are %v", classes)
	}
	if last := d.Legend[len(d.Legend)-1]; last.Text != "without a process" || last.X > d.Right-120 {
		t.Errorf("%+v", d.Legend)
	}
}

// Nothing of a plan that has not begun can be drawn, and nothing is missed.
func TestAReportOfNothing(t *testing.T) {
	p := five()
	r := New(p, journal.New(p), journal.Timeline{}, nil, true, start)
	for name, write := range map[string]func(io.Writer) error{"html": r.WriteHTML, "svg": r.WriteSVG, "json": r.WriteJSON} {
		var b bytes.Buffer
		if err := write(&b); err != nil || b.Len() == 0 || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
	if r.drawn().State != "not begun" {
		t.Errorf("%+v", r.drawn().State)
	}
}

// The page needs nothing from elsewhere, and text of others stays text.
func TestThePageStandsAlone(t *testing.T) {
	p, j, whole := moved(t)
	var b bytes.Buffer
	if err := New(p, j, whole, nil, true, start.Add(9*time.Hour)).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, never := range []string{"<script", "src=", "@import", "url(", "http://", "https://", "ZgotmplZ"} {
		if rest := strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""); strings.Contains(rest, never) {
			t.Errorf("the page has %s", never)
		}
	}
	for _, want := range []string{"anna", "ben", "vouched: node n1 is gone", "&lt;script&gt;", "Content-Security-Policy", "2026-01-01 22:00:10.000 UTC", "still away", "2 checks passed", "image &lt;b&gt;web&lt;/b&gt;:latest may differ", "accepted with --ignore", "56 writes were sent", "<td>web-4</td><td>allows 0"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}

// The picture is well-formed XML, stays within its width, and a pause over night takes little of it.
func TestThePictureOfAMove(t *testing.T) {
	p, j, whole := moved(t)
	r := New(p, j, whole, nil, true, start.Add(8*time.Hour+70*time.Second))
	var b bytes.Buffer
	if err := r.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if err := wellFormed(b.Bytes()); err != nil {
		t.Error(err)
	}
	d := r.drawn()
	if len(d.Gaps) != 1 || d.Gaps[0].Text != "7h59m" || len(d.Names) != 4 {
		t.Errorf("gaps %v, names %v", d.Gaps, d.Names)
	}
	for _, x := range d.Bars {
		if x.X < labels || x.X+x.W > d.Right+0.01 || x.Y < 0 || x.Y+x.H > d.Base {
			t.Errorf("a bar is outside the picture: %+v", x)
		}
	}
	const file = "testdata/moves.svg"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, b.Bytes()) {
		t.Errorf("the picture is not that of %s (%v); look at it, and run with -update", file, err)
	}
}

func wellFormed(raw []byte) error {
	for d := xml.NewDecoder(bytes.NewReader(raw)); ; {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// A thousand ordinals still are one picture, and times that make no sense are drawn within it.
func TestThePictureIsBounded(t *testing.T) {
	p := five()
	p.Count = 1000
	var whole journal.Timeline
	for k := range 1000 {
		at := start.Add(time.Duration(k%7) * time.Duration(k) * time.Minute)
		whole.Waves = append(whole.Waves, journal.Wave{Seq: k + 1, Ordinals: plans.Slice{Start: int32(k), Replicas: 1}, To: plans.Destination, Left: metav1.NewMicroTime(at), Took: []float64{0, 0, 0, 0, float64(k % 3)}})
	}
	d := New(p, journal.New(p), whole, nil, true, start).drawn()
	if d.High > 4100 || len(d.Bars) < 1000 {
		t.Errorf("height %.0f, %d bars", d.High, len(d.Bars))
	}
	for _, x := range d.Bars {
		if !(x.X >= labels && x.X+x.W <= d.Right+0.01) {
			t.Fatalf("a bar is outside the picture: %+v", x)
		}
	}
}

func TestTheReportIsJSON(t *testing.T) {
	p, j, whole := moved(t)
	var b bytes.Buffer
	if err := New(p, j, whole, nil, true, start.Add(9*time.Hour)).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Kind != Kind || back.Peak != 2 || len(back.Events) != 3 || back.Waves[0].Seconds[plans.Starting] != 6 {
		t.Errorf("%+v: %v", back, err)
	}
}

// five returns a plan over the ordinals 0 to 4.
func five() *plans.Plan {
	p := planstest.Three()
	p.Start, p.Count = 0, 5
	return p
}
