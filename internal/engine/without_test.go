package engine

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Whatever an engine can do without can be taken away, and its timeline says so.
func TestACarefulRunHasNoAccelerations(t *testing.T) {
	e, _ := scripted(t, plans.Protect, see(plans.Done()))
	e.Now, e.Careful = atFixedTime, true
	e.Without(Accelerations()...)
	if e.batch != nil || e.skipRelax != nil || e.ahead != nil || e.openBudgets != nil || e.Drains != nil {
		t.Errorf("it has %v, %v, %v, %v, %v", e.batch, e.skipRelax, e.ahead, e.openBudgets, e.Drains)
	}
	if err := e.Accept(t.Context(), plans.Command{Direction: plans.Move, By: "eve"}, nil); err != nil {
		t.Fatal(err)
	}
	events := stored(t, e).Timeline.Events
	if len(events) != 1 || events[0].What != "Move; careful" {
		t.Errorf("the timeline has %+v", events)
	}
	if p, err := e.Advance(t.Context()); err != nil || p.Kind != Advanced {
		t.Errorf("%+v, %v", p, err)
	}
}
