package requests

import (
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Only the abort of a plan that no process has taken over needs no look at its clusters.
func TestOnlyWhatWasNeverBegunIsCancelled(t *testing.T) {
	p := &plans.Plan{ID: "web-abc", Name: "web", Count: 3, Window: 1, MaxUnavailable: 1}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change    func(*journal.Journal)
		direction plans.Direction
		want      bool
	}{
		"an abort":                 {func(*journal.Journal) {}, plans.Abort, true},
		"of one that was blocked":  {func(j *journal.Journal) { j.Block("", "a check has failed") }, plans.Abort, true},
		"of one that was paused":   {func(j *journal.Journal) { j.Paused = true }, plans.Abort, true},
		"of one that was taken":    {func(j *journal.Journal) { j.Epoch = 1 }, plans.Abort, false},
		"of one that has written":  {func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 }, plans.Abort, false},
		"a move":                   {func(*journal.Journal) {}, plans.Move, false},
		"of one that has moved":    {func(j *journal.Journal) { j.Epoch, j.Outcome = 4, plans.Moved }, plans.Abort, false},
		"of one recovered by hand": {func(j *journal.Journal) { j.Begun = 1 }, plans.Abort, false},
	} {
		j := journal.New(p)
		c.change(j)
		before := *j
		got, err := Cancel(p, j, plans.Command{Direction: c.direction, By: "anna"}, now)
		if err != nil || got != c.want {
			t.Errorf("%s: %t, %v, expected %t", name, got, err, c.want)
		}
		if !got && (j.Outcome != before.Outcome || j.Leg != before.Leg) {
			t.Errorf("%s: the journal has changed: %+v", name, j)
		}
		if got && (j.Outcome != plans.Aborted || j.Epoch != 0 || j.EndedAt == nil || j.Blocked != "" || !j.Ended() || len(j.Timeline.Events) == 0) {
			t.Errorf("%s: %+v", name, j)
		}
	}
}
