package engine

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A journal that was made again has heard all that is declared: the plan rests until somebody asks anew.
func TestARecoveredPlanRestsUntilSomebodyAsks(t *testing.T) {
	p := &plans.Plan{Name: "web", Count: 3, Window: 1, Hash: "abc"}
	for _, course := range []plans.Goal{plans.ToMove, plans.ToAbort, plans.ToFinalize} {
		for _, leg := range []plans.Course{plans.Move, plans.Return, plans.Clean} {
			for _, ask := range []*plans.Ask{nil, {ID: "1", Resume: true}} {
				j, d := plans.NewJournal(p), p.Declared()
				d.Course, d.Ask = course, ask
				if leg != plans.Move {
					j.Depart(p, leg)
				}
				j.Detached, j.Epoch, j.Held = true, 100, "it was made again"
				before := Ask(p, j, &d)
				Hear(p, j, &d)
				if after := Ask(p, j, &d); after.Work || !before.Work {
					t.Errorf("%s on a %s, %+v: goes on %t, and did before: %t", course, leg, ask, after.Work, before.Work)
				}
				d.Ask = &plans.Ask{ID: "2", Resume: true}
				if after := Ask(p, j, &d); !after.Work {
					t.Errorf("%s on a %s, asked anew: it rests", course, leg)
				}
			}
		}
	}
}
