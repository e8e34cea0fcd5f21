package view_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/internal/view"
	"github.com/stsmigrate/stsmigrate/plans"
)

var update = flag.Bool("update", false, "write the golden frames anew") //nolint:gochecknoglobals // flags are

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func seconds(all ...float64) (out view.Spans) {
	for i, s := range all {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out
}

// moved returns a migration of n ordinals of which the highest have arrived.
func moved(n, arrived int) view.Migration {
	m := view.Migration{
		Plan: "web", Source: "shop@east", Destination: "shop@west", SourceName: "east", DestinationName: "west",
		State: "Moving", Active: true, To: plans.Destination, Now: noon(), Began: noon().Add(-372 * time.Second),
		MaxUnavailable: 1, Unavailable: new(int32), WavesLeft: n - arrived, Arrived: arrived,
		Facts: []view.Fact{{Name: "process", Text: "laptop-7/4242, epoch 4"}},
	}
	if arrived > 0 {
		m.Known = 4
		m.Usual, m.TightLongest = seconds(2.1, 0.4, 0.3, 2.9, 4.8), 12*time.Second
	}
	for k := range n {
		o := view.Ordinal{Ordinal: int32(n - 1 - k), Source: "Ready", Destination: "-", Phase: view.Queued}
		if k < arrived {
			o.Source, o.Destination, o.Phase = "-", "Ready", view.Arrived
			o.Spans = seconds(2+0.1*float64(k%3), 0.4, 0.3, 2.8, 4.9)
			o.Since = noon().Add(-time.Duration(arrived-k) * time.Minute)
		}
		m.Ordinals = append(m.Ordinals, o)
	}
	return m
}

// flying puts the next ordinal in flight.
func flying(m view.Migration) view.Migration {
	o := &m.Ordinals[m.Arrived]
	o.Source, o.Phase = "-", "Vacate"
	o.Spans, o.Running, o.RunningSince = seconds(3.1), plans.Detaching, noon().Add(-18*time.Second)
	o.Since = noon().Add(-21 * time.Second)
	down := int32(1)
	m.Unavailable, m.TightSince = &down, noon().Add(-22*time.Second)
	m.Budgets = []view.Budget{{Side: "east", Healthy: int32(len(m.Ordinals) - m.Arrived - 1)}, {Side: "west", Healthy: int32(m.Arrived)}}
	m.Wait = view.Wait{Pods: fmt.Sprintf("web-%d", o.Ordinal), Reason: "VolumeAttachment csi-71c2f0 of volume pv-5d10 on node n3 is still there", Since: noon().Add(-18 * time.Second), Usual: 6 * time.Second}
	return m
}

func states() map[string]view.Migration {
	begin := moved(5, 0)
	begin.State, begin.Active, begin.Began, begin.Facts, begin.Next = "Planned", false, time.Time{}, nil, "`stsmigrate apply web -n shop --context west`"
	terminating := flying(moved(5, 1))
	terminating.Ordinals[1].Source, terminating.Wait = "Terminating", view.Wait{}
	blocked := moved(5, 2)
	blocked.State, blocked.Active = "Blocked", false
	blocked.Wait.Reason = "StatefulSet shop/web in east has the ordinals [0..1], expected [0..2] (last written by kubectl-edit, 11:59:02 UTC); set replicas to 3 and resume"
	blocked.Next = "`stsmigrate resume web -n shop --context west` or `stsmigrate abort web -n shop --context west`"
	paused := moved(5, 3)
	paused.State, paused.Active, paused.Next = "Paused", false, "`stsmigrate resume web -n shop --context west`"
	back := flying(moved(5, 2))
	back.State, back.To = "Aborting", plans.Source
	for i, j := 0, 4; i < j; i, j = i+1, j-1 {
		a, b := &back.Ordinals[i], &back.Ordinals[j]
		*a, *b = *b, *a
		a.Ordinal, b.Ordinal = b.Ordinal, a.Ordinal
	}
	for i := range back.Ordinals {
		o := &back.Ordinals[i]
		o.Source, o.Destination = o.Destination, o.Source
	}
	back.Wait.Pods = "web-2"
	all := moved(5, 5)
	all.State, all.Active, all.Ended, all.Facts = "Moved", false, noon(), nil
	all.Next = "`stsmigrate finalize web -n shop --context west` cleans up the source; until then `stsmigrate abort web -n shop --context west` rolls back"
	unseen := moved(5, 2)
	unseen.Unavailable = nil
	for i := range unseen.Ordinals {
		unseen.Ordinals[i].Source = "?"
	}
	unseen.Facts = append(unseen.Facts, view.Fact{Name: "unseen", Text: "source of plan web (context east): connection refused"})
	return map[string]view.Migration{
		"begin": begin, "moving": terminating, "waiting": flying(moved(5, 2)), "blocked": blocked, "paused": paused,
		"back": back, "moved": all, "unseen": unseen, "sixty": flying(moved(60, 22)),
	}
}

func styles() map[string]view.Style {
	return map[string]view.Style{"": {}, "-ascii": {ASCII: true}, "-color": {Color: true}}
}

// golden compares a frame with the one that is kept. An escape code is kept as \e.
func golden(t *testing.T, name, frame string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	frame = strings.ReplaceAll(frame, "\x1b", `\e`) + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(frame), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), frame); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestFramesAreAsTheyWere(t *testing.T) {
	for state, m := range states() {
		for _, width := range []int{60, 80, 120} {
			golden(t, fmt.Sprintf("%s-%d", state, width), view.Render(m, view.Size{Width: width, Height: 24}, view.Style{}))
		}
	}
	waiting := states()["waiting"]
	for name, style := range styles() {
		golden(t, "waiting-80"+name, view.Render(waiting, view.Size{Width: 80, Height: 24}, style))
	}
	golden(t, "explain-80", view.Explain(waiting, view.Size{Width: 80, Height: 24}, view.Style{}))
}

// The page about the view shows a frame of these tests.
func TestThePageShowsAFrame(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "watching.md"))
	if err != nil {
		t.Fatal(err)
	}
	frame := view.Render(states()["waiting"], view.Size{Width: 80, Height: 24}, view.Style{})
	if !strings.Contains(string(page), "```\n"+frame+"\n```") {
		t.Errorf("docs/watching.md has another frame than\n%s", frame)
	}
}

// Whatever the plan and the size of the window, no line is too wide and there are not too many of them.
func TestAFrameFitsItsWindow(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	all := states()
	all["one"], all["hostile"] = moved(1, 0), flying(moved(3, 1))
	hostile := all["hostile"]
	hostile.Wait.Reason = strings.Repeat("x", 500) + "\x1b[2J\n世界 " + strings.Repeat("世", 90)
	hostile.Source, hostile.SourceName = strings.Repeat("gke_", 60), strings.Repeat("長い", 20)
	all["hostile"] = hostile
	scattered := moved(60, 20)
	for i := range scattered.Ordinals {
		scattered.Ordinals[i].Source = []string{"Ready", "Pending", "missing"}[i%3]
	}
	all["scattered"] = scattered
	for state, m := range all {
		for range 60 {
			size := view.Size{Width: dice.IntN(200), Height: dice.IntN(70)}
			for name, style := range styles() {
				for _, frame := range []string{view.Render(m, size, style), view.Explain(m, size, style)} {
					fits(t, state+name, frame, size)
					if style.ASCII && state != "hostile" && strings.ContainsFunc(frame, func(r rune) bool { return r > unicode.MaxASCII }) {
						t.Fatalf("%s: not ASCII:\n%s", state, frame)
					}
					if !style.Color && strings.Contains(frame, "\x1b") {
						t.Fatalf("%s: an escape code without colour: %q", state, frame)
					}
				}
			}
		}
	}
}

func fits(t *testing.T, state, frame string, size view.Size) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > max(size.Height, 1) {
		t.Fatalf("%s: %d lines in a window of %v:\n%s", state, len(lines), size, frame)
	}
	for _, line := range lines {
		if n := ansi.StringWidth(line); n > size.Width {
			t.Fatalf("%s: a line has %d columns in a window of %v:\n%s", state, n, size, line)
		}
	}
}

// A set of sixty is complete in a window of 24 lines: every ordinal is in a row, and the wave under way, its reason
// and the next ordinals are legible.
func TestSixtyOrdinalsFitAnOrdinaryWindow(t *testing.T) {
	frame := view.Render(states()["sixty"], view.Size{Width: 80, Height: 24}, view.Style{})
	for _, part := range []string{"22 of 60", "36..0", "37 ", "38 ", "Vacate", "waits    web-37: VolumeAttachment", "usually 6.0s"} {
		if !strings.Contains(frame, part) {
			t.Errorf("there is no %q:\n%s", part, frame)
		}
	}
	if strings.Contains(frame, "more ordinals") {
		t.Errorf("some are not shown:\n%s", frame)
	}
}

// Where rows must be left out, those that need attention stay.
func TestRowsThatAreNotWellStay(t *testing.T) {
	m := moved(60, 30)
	for i := range m.Ordinals {
		if i%2 == 0 {
			m.Ordinals[i].Phase = "queued " // neighbours differ: nothing folds
		}
	}
	m.Ordinals[45].Source = "missing"
	frame := view.Render(m, view.Size{Width: 80, Height: 12}, view.Style{})
	if !strings.Contains(frame, "missing") || !strings.Contains(frame, "more ordinals") {
		t.Errorf("got\n%s", frame)
	}
}

// Below the table a long reason is cut. Where it is explained, it is whole.
func TestAnExplanationIsWhole(t *testing.T) {
	m := states()["blocked"]
	m.Wait.Reason = strings.Repeat("a long reason ", 25) + "END"
	size := view.Size{Width: 80, Height: 24}
	if frame := view.Render(m, size, view.Style{}); strings.Contains(frame, "END") || !strings.Contains(frame, "...") {
		t.Errorf("got\n%s", frame)
	}
	if frame := view.Explain(m, size, view.Style{}); !strings.Contains(frame, "END") {
		t.Errorf("got\n%s", frame)
	}
}

// The estimate is made from the waves before, and from nothing else.
func TestTimeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*view.Migration)
		want   time.Duration
	}{
		"two waves, and the one under way has taken longer than usual": {func(*view.Migration) {}, 21 * time.Second},
		"nothing to estimate from":                                     {func(m *view.Migration) { m.Usual = view.Spans{} }, 0},
		"no process":                                                   {func(m *view.Migration) { m.Active = false }, 0},
		"none in flight":                                               {func(m *view.Migration) { m.Ordinals[2].Running = "" }, 31500 * time.Millisecond},
	} {
		m := flying(moved(5, 2))
		m.WavesLeft = 3
		c.change(&m)
		if got := m.TimeLeft(); got != c.want {
			t.Errorf("%s: got %s, expected %s", name, got, c.want)
		}
	}
}

// The first wave corrects the estimate of the plan, and says that it is the only one that is known.
func TestTheFirstWaveSaysWhatToExpect(t *testing.T) {
	m := moved(5, 1)
	m.Known = 1
	if frame := view.Render(m, view.Size{Width: 120, Height: 24}, view.Style{}); !strings.Contains(frame, "the first took 10s, so about 42s left") {
		t.Errorf("got\n%s", frame)
	}
}
