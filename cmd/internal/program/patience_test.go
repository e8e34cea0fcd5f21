package program

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// hand is a clock that a test moves. Every tick is taken before the next one.
type hand chan time.Time

func (h hand) after(time.Duration) <-chan time.Time { return h }

func TestAUserWhoWaitsIsTold(t *testing.T) {
	var out bytes.Buffer
	h := hand(make(chan time.Time))
	done := Patience{&out, h.after}.Busy("Running the checks")
	for range 3 {
		h <- time.Time{}
	}
	done()
	done()
	if out.String() != "Running the checks ...\n" {
		t.Errorf("no terminal: %q", out.String())
	}
}

func TestWhatIsQuickIsNotAnnounced(t *testing.T) {
	var out bytes.Buffer
	Patience{&out, hand(make(chan time.Time)).after}.Busy("Running the checks")()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}

// A line is cleared if there is one, after the last that was shown.
func TestALineIsClearedAfterwards(t *testing.T) {
	for ticks, want := range []string{"", "1 clean", "1 2 clean"} {
		var said []string
		h := hand(make(chan time.Time))
		done := Patience{nil, h.after}.begin(func(s int) { said = append(said, string(rune('0'+s))) }, func() { said = append(said, "clean") })
		for range ticks {
			h <- time.Time{}
		}
		if done(); strings.Join(said, " ") != want {
			t.Errorf("%d seconds: %q, expected %q", ticks, said, want)
		}
	}
}
