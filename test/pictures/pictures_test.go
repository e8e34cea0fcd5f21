package pictures

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

var update = flag.Bool("update", false, "write the pictures of docs/pictures")

const folder = "../../docs/pictures"

func TestPicturesAreAsDrawn(t *testing.T) {
	for name, want := range All() {
		file := filepath.Join(folder, name)
		if *update {
			if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(file, []byte(want), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != want {
			t.Errorf("%s is stale: run go test ./test/pictures -update", file)
		}
		for d := xml.NewDecoder(strings.NewReader(want)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// A picture that no page shows is drawn for nothing.
func TestEveryPictureIsShown(t *testing.T) {
	page, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range All() {
		if !strings.Contains(string(page), "](pictures/"+name+")") {
			t.Errorf("docs/concepts.md does not show %s", name)
		}
	}
}

// The picture of a wave has the steps of a plan with gates, in their order.
func TestTheWaveHasTheStepsOfAPlan(t *testing.T) {
	p := planstest.Eventful(t)
	leg := plans.Leg{Direction: plans.Move, First: 1, Lowest: p.Start, End: p.End()}
	picture, at := drawWave(), 0
	var ops []plans.Op
	for seq := 1; ; seq++ {
		s, more := p.Step(leg, seq)
		if !more {
			break
		}
		if s.Moves() && !slices.Contains(ops, s.Op) {
			ops = append(ops, s.Op)
		}
	}
	if len(ops) < 8 {
		t.Fatalf("a wave has the steps %v", ops)
	}
	for _, op := range ops {
		next := strings.Index(picture[at:], ">"+string(op)+"<")
		if next < 0 {
			t.Fatalf("the picture does not have %s after the steps before it: %v", op, ops)
		}
		at += next
	}
}
