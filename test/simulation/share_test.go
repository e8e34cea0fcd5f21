package simulation

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/tally"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

// longShare is the share that SIM_LONG asks for, in place of that of a day: every case for 1, which takes more than an
// hour on two cores (`make soak`), one of forty for 40. It is 0 without SIM_LONG.
var longShare = asked(os.Getenv("SIM_LONG"))

func asked(text string) int {
	n, err := strconv.Atoi(text)
	if text != "" && (err != nil || n < 1) {
		panic(fmt.Sprintf("SIM_LONG is %q: expected 1 for every case, or N for one of N", text))
	}
	return n
}

// long reports whether more is requested than is played on a day.
func long() bool { return longShare > 0 }

// day selects the cases of a run that does not play them all. It is the number of the day, so that a week of
// runs plays every crash point. Of the random seeds it plays some. SIM_DAY plays the cases of another day.
var day = today.Day("SIM_DAY")

func TestMain(m *testing.M) {
	// The worlds are a great many small objects, and each collection looks at all of them. Other programs of the machine
	// need memory too. GOMEMLIMIT, if set, takes precedence.
	debug.SetGCPercent(400)
	_, _ = memlimit.Set(memlimit.WithRatio(0.6), memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	code := m.Run()
	if code != 0 {
		fmt.Printf("SIM_DAY=%d plays the same cases again.\n", day)
	}
	os.Exit(code)
}

// share is how many of the cases of a series a run plays: one of this number.
type share int

const (
	everyCase share = 1
	fifth     share = 5
	tenth     share = 10
	twentieth share = 20
)

// shareOf returns the share of the crash points of a shape: all of one shape, and some of the others.
func shareOf(shape string) share {
	if shape == string(plans.Reimport) {
		return everyCase
	}
	return fifth
}

// plays reports whether a run of today includes the case with this number.
func (s share) plays(n int) bool {
	if long() {
		s = share(longShare)
	}
	return (n+day)%int(s) == 0
}

// playsFault reports whether a run of today includes this fault, one of a number of kinds, at this write. Where
// every write is played, each gets one kind.
func (s share) playsFault(write, kind, kinds int) bool {
	if s == everyCase && !long() {
		return (write+kind+day)%kinds == 0
	}
	return s.plays(write*kinds + kind)
}

// seedsOf returns the seeds of a run: a few of all that the long runs play, other ones every day.
func seedsOf(few, all uint64) (first, last uint64) {
	runs := all / few
	if long() {
		runs = uint64(longShare)
		few = (all + runs - 1) / runs
	}
	first = uint64(day)%runs*few + 1
	return first, min(first+few-1, all)
}

// series is a course of which some writes are played with some faults.
type series struct {
	from   int // the number of the first write
	played map[fault][]byte
	last   *byte
}

// newSeries keeps what is played of a course, for the page about reliability.
func newSeries(t *testing.T, course string, from, to int, kinds []fault) *series {
	t.Helper()
	s := &series{from: from, played: map[fault][]byte{}}
	for _, f := range kinds {
		s.played[f] = bytes.Repeat([]byte{tally.Left}, to-from)
	}
	_, world, _ := strings.Cut(t.Name(), "/")
	began := time.Now()
	t.Cleanup(func() {
		if t.Failed() && s.last != nil {
			*s.last = tally.Broken
		}
		for f, played := range s.played {
			tally.Add(tally.Line{
				Part: "writes", World: strings.ReplaceAll(world, "_", " "), Case: course + ": " + string(f), Played: string(played),
				Seconds: time.Since(began).Seconds() / float64(len(s.played)),
			})
		}
	})
	return s
}

// plays notes that a fault is played at a write.
func (s *series) plays(f fault, write int) {
	s.last = &s.played[f][write-s.from]
	*s.last = tally.Held
}

// drawn keeps which seeds are played, for the page about reliability.
func drawn(t *testing.T, part string, from, to, all uint64) {
	t.Helper()
	_, world, _ := strings.Cut(t.Name(), "/")
	began := time.Now()
	t.Cleanup(func() {
		tally.Add(tally.Line{
			Part: part, World: strings.ReplaceAll(world, "_", " "), Seeds: []tally.Seeds{{First: from, Last: to}}, Of: int(all),
			Failed: t.Failed(), Seconds: time.Since(began).Seconds(),
		})
	})
}
