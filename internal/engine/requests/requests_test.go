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

// An abort that is declared to be a Move again is turned by a new request only: tools write old directions again.
func TestAnAbortIsTurnedOnlyByANewRequest(t *testing.T) {
	p := &plans.Plan{Name: "web", Count: 3, Window: 1, Hash: "abc"}
	for name, c := range map[string]struct {
		request *plans.Request
		parted  bool
		turns   bool
	}{
		"without a request":              {nil, false, false},
		"with a request that was heard":  {&plans.Request{ID: "1", Resume: true}, false, false},
		"with a new one":                 {&plans.Request{ID: "2", Resume: true}, false, true},
		"with a new one, but it is over": {&plans.Request{ID: "2", Resume: true}, true, false},
	} {
		for _, leg := range []plans.Direction{plans.Abort, plans.Finalize} {
			j, d := journal.New(p), p.Declared()
			j.Outcome = plans.Moved
			j.StartLeg(p, leg)
			j.Detached, j.Epoch, j.Observed = true, 7, plans.Observed{Direction: leg, Request: "1"}
			if c.parted {
				j.Done, j.Begun, j.Saved.Retired = p.FirstClosing(j.Leg)-1, p.FirstClosing(j.Leg), "u"
			}
			d.Direction, d.Request = plans.Move, c.request
			got := Read(p, j, &d)
			if got.Turns != c.turns || c.turns != (got.Direction == plans.Move) || c.turns != (got.Refused == "") {
				t.Errorf("%s, on %s: %+v", name, leg, got)
			}
			if !c.turns {
				continue
			}
			if err := Accept(p, j, got.Command); err != nil || j.Leg.Direction != plans.Move {
				t.Errorf("%s, on %s: %v, and the plan is on %s", name, leg, err, j.Leg.Direction)
			}
			if again := Read(p, j, &d); again.Turns || again.Refused != "" {
				t.Errorf("%s, on %s, read again: %+v", name, leg, again)
			}
		}
	}
}
