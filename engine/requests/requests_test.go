package requests

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A recovered journal has heard everything declared: the plan rests until the user makes a new request.
func TestARecoveredPlanRestsUntilSomebodyAsks(t *testing.T) {
	p := &plans.Plan{Name: "web", Count: 3, Window: 1, Hash: "abc"}
	for _, direction := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
		for _, leg := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
			for _, ask := range []*plans.Request{nil, {ID: "1", Resume: true}} {
				j, d := journal.New(p), p.Declared()
				d.Direction, d.Request = direction, ask
				if leg != plans.Move {
					j.StartLeg(p, leg)
				}
				j.Detached, j.Epoch, j.Blocked = true, 100, "it was recreated"
				before := Read(p, j, &d)
				Observe(p, j, &d)
				if after := Read(p, j, &d); after.Work || !before.Work {
					t.Errorf("%s on a %s, %+v: goes on %t, and did before: %t", direction, leg, ask, after.Work, before.Work)
				}
				d.Request = &plans.Request{ID: "2", Resume: true}
				if after := Read(p, j, &d); !after.Work {
					t.Errorf("%s on a %s, asked anew: it rests", direction, leg)
				}
			}
		}
	}
}
