package simulation

import (
	"fmt"
	"os"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

// long reports whether every case is requested. That takes more than an hour on two cores (`make soak`).
func long() bool { return os.Getenv("SIM_LONG") != "" }

// day selects the cases of a run that does not play them all. It is the number of the day, so that a week of
// runs plays every crash point. Of the random seeds it plays some. SIM_DAY plays the cases of another day.
var day = today.Day("SIM_DAY")

func TestMain(m *testing.M) {
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
)

// shareOf returns the share of the crash points of a shape: all of one shape, and some of the others.
func shareOf(shape string) share {
	if shape == string(plans.Reimport) {
		return everyCase
	}
	return fifth
}

// plays reports whether a run of today includes the case with this number.
func (s share) plays(n int) bool { return long() || (n+day)%int(s) == 0 }

// playsFault reports whether a run of today includes this fault, one of a number of kinds, at this write. Where
// every write is played, each gets one kind.
func (s share) playsFault(write, kind, kinds int) bool {
	if s == everyCase {
		return long() || (write+kind+day)%kinds == 0
	}
	return s.plays(write*kinds + kind)
}

// seedsOf returns the seeds of a run: a few of all that the long run plays, other ones every day.
func seedsOf(few, all uint64) (first, last uint64) {
	if long() {
		return 1, all
	}
	first = uint64(day)%(all/few)*few + 1
	return first, first + few - 1
}
