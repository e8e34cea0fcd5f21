package program

import (
	"bytes"
	"testing"
)

func TestTheWidthIsTheUsersOrTheTerminals(t *testing.T) {
	known, unknown := func() (int, bool) { return 120, true }, func() (int, bool) { return 0, false }
	for _, c := range []struct {
		set  string
		ask  func() (int, bool)
		want int
	}{{"60", known, 60}, {"", known, 120}, {"wide", known, 120}, {"-1", unknown, 80}, {"", unknown, 80}} {
		if got := width(c.set, c.ask); got != c.want {
			t.Errorf("COLUMNS=%s: %d, expected %d", c.set, got, c.want)
		}
	}
	t.Setenv("COLUMNS", "")
	if got := Width(&Shown{To: &bytes.Buffer{}}); got != 80 {
		t.Errorf("no terminal: %d", got)
	}
}

func TestLinesAreBrokenBetweenWords(t *testing.T) {
	for _, c := range []struct {
		line, want string
		width      int
	}{
		{"  WARN a: one two three", "  WARN a: one\n     two three\n", 14},
		{"WARN  name      text of it", "WARN  name\n     text of it\n", 16},
		{"see a-name-that-is-longer-than-a-line now", "see\n     a-name-that-is-longer-than-a-line\n     now\n", 12},
		{"schön schön", "schön schön\n", 11},
		{"short", "short\n", 80},
	} {
		if got := Wrap(c.line, c.width, 5); got != c.want {
			t.Errorf("%q, expected %q", got, c.want)
		}
	}
}
