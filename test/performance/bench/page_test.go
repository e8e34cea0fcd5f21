package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/test/internal/witness"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

var update = flag.Bool("update", false, "write the page and the picture of fixed figures anew")

// figures returns the report of a run that was not made.
func figures() *report {
	r := &report{commit: "0123abc", kubernetes: "v9.9.9", date: "2001-02-03", cores: 7, ordinals: 4, large: 10, planned: 61}
	for i, w := range ways(r.ordinals, r.large) {
		m := &measured{way: w}
		begin := at(0)
		for end := w.ordinals; end > 0; end -= w.window {
			step := func(n int) time.Time {
				begin = begin.Add(ms(n + i + int(end)))
				return begin
			}
			p := passage{wave: waveBelow(end, w.window), begin: begin}
			p.Span = witness.Span{SourceDeleting: step(20), SourceGone: step(5), DestinationCreated: step(10), DestinationRunning: step(3), DestinationReady: step(1)}
			m.passages = append(m.passages, p)
		}
		if w.counted {
			m.counts = &counts{took: ms(100 * int(w.ordinals)), watched: 2048}
			for _, k := range append(kinds(), traffic.Read) {
				m.apply = append(m.apply, traffic.Call{Kind: k, Resource: "pods", Bytes: 1024})
			}
		}
		if !w.byHand {
			m.lines = []line{{at(0), "each wave was 0.01 s on neither side"}, {at(1), "moved"}}
		}
		r.moves = append(r.moves, m)
	}
	return r
}

func TestPageAndPicture(t *testing.T) {
	r := figures()
	for file, got := range map[string]string{"speed.md": r.page("speed.svg"), "speed.svg": r.picture()} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got, -update writes it anew):\n%s", file, diff)
		}
	}
}

func TestThePictureIsPlain(t *testing.T) {
	r := figures()
	r.commit = "<script>&"
	picture := r.picture()
	if again := r.picture(); again != picture {
		t.Error("the same figures make another picture")
	}
	texts, d := 0, xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "text":
			texts++
		case "svg", "title", "style", "rect", "line":
		default:
			t.Errorf("element %s", start.Name.Local)
		}
	}
	if want := 1 + len(sections()) + 2*len(r.moves) + 1; texts != want {
		t.Errorf("%d texts, want %d: the heading, the names of the sections, two for each move, the origin", texts, want)
	}
	if !strings.Contains(picture, "prefers-color-scheme: dark") {
		t.Error("it has no colours for the dark")
	}
}

// Every figure that changes, changes the page, and the text that shows it.
func TestEveryNumberComesFromTheRun(t *testing.T) {
	small := way{ordinals: 4, window: 1}
	counted := small
	counted.counted = true
	for name, c := range map[string]struct {
		change        func(*report)
		page, picture []string
	}{
		"commit":     {func(r *report) { r.commit = "feed5" }, []string{"commit feed5,"}, []string{"commit feed5,"}},
		"Kubernetes": {func(r *report) { r.kubernetes = "v8.7.6" }, []string{"Kubernetes v8.7.6,"}, []string{"Kubernetes v8.7.6,"}},
		"cores":      {func(r *report) { r.cores = 31 }, []string{", 31 cores,"}, []string{", 31 cores,"}},
		"date":       {func(r *report) { r.date = "1999-01-01" }, []string{", 1999-01-01."}, []string{", 1999-01-01<"}},
		"plan":       {func(r *report) { r.planned = 79 }, []string{"sends 79 requests", "| 80 | 79 | met |"}, nil},
		"worse plan": {func(r *report) { r.planned = 81 }, []string{"sends 81 requests", "| 80 | 81 | MISSED |"}, nil},
		"wave": {func(r *report) {
			s := &r.find(small).passages
			*s = []passage{{wave{0, 0}, at(0), witness.Span{SourceDeleting: at(111), SourceGone: at(333), DestinationCreated: at(666), DestinationRunning: at(1110), DestinationReady: at(1665)}}}
		}, []string{
			"| 4 ordinals, two clusters, w = 1 | 1 | 111.0 / 111.0 | 222.0 / 222.0 | 333.0 / 333.0 | 444.0 / 444.0 | 555.0 / 555.0 | 444.0 / 444.0 | 444.0 |",
			"| 0.333 s | MISSED |",
		}, []string{
			"<title>prepare: 111.0 ms", "<title>terminate: 222.0 ms", "<title>detach, hand over: 333.0 ms", "<title>attach: 444.0 ms", "<title>ready: 555.0 ms", ">1665.0<",
		}},
		"requests": {func(r *report) {
			c := r.find(counted).counts
			c.took, c.watched = ms(8888), 4<<20
			for range 39 {
				c.apply = append(c.apply, traffic.Call{Kind: traffic.Write, Resource: "pods", Bytes: 1 << 20})
			}
		}, []string{"| 4 ordinals, two clusters, w = 1, counted | 0.5 | 10.0 | 0.5 | 11.0 | 11009.2 | 1024.0 | 2.222 |", "| 10.0 | 10.0 | met |"}, nil},
		"own clock": {func(r *report) { r.find(small).lines = []line{{at(0), "each wave was 7.77 s away"}} }, []string{"| 4 ordinals, two clusters, w = 1 | 7.77 s away |"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, r := figures(), figures()
			c.change(r)
			lacks(t, before.page("p.svg"), r.page("p.svg"), c.page)
			lacks(t, before.picture(), r.picture(), c.picture)
		})
	}
}

// lacks fails unless each text is in what there is now, and was not in what was there before.
func lacks(t *testing.T, before, now string, texts []string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(before, text) || !strings.Contains(now, text) {
			t.Errorf("%q: before %t, now %t", text, strings.Contains(before, text), strings.Contains(now, text))
		}
	}
}

func TestWhatWasNotMeasuredMissesItsGoal(t *testing.T) {
	for _, g := range (&report{ordinals: 4, large: 10, planned: 1000}).goals() {
		if g.ok() {
			t.Errorf("%s: %v counts as met", g.what, g.have)
		}
	}
}

func TestWaysHaveNamespacesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, w := range append(ways(20, 200), way{ordinals: planned, window: 1}) {
		for _, n := range []string{w.set().Namespace, w.arrived().Namespace + "@" + w.places()} {
			if names[n] {
				t.Errorf("namespace %s is used twice", n)
			}
			names[n] = true
		}
	}
}
