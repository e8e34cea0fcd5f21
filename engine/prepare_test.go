package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/reasons"
)

// apart is an engine of a plan between two clusters, at an operation of its first wave. The looks at what it prepares
// are see.
func apart(t *testing.T, op plans.Op, step, see func(context.Context, plans.StepContext) (plans.Observation, error)) (*Engine, plans.Step) {
	t.Helper()
	e, at := scripted(t, op, step)
	e.plan.Source.Cluster, e.plan.Destination.Cluster = "uid-0", "uid-1"
	e.preparation.look, e.preparation.meanwhile = see, see
	return e, at
}

// due is a look that finds a write, until it has been sent.
func due(sent *int, err error) func(context.Context, plans.StepContext) (plans.Observation, error) {
	return func(context.Context, plans.StepContext) (plans.Observation, error) {
		if *sent > 0 {
			return plans.Done(), nil
		}
		return plans.Write("create volume pv", plans.Undo{}, func(context.Context) error { *sent++; return err }), nil
	}
}

func TestWhichWaveIsPrepared(t *testing.T) {
	nothing := func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil }
	for name, c := range map[string]struct {
		op     plans.Op
		change func(*Engine)
		want   string
	}{
		"its own, before it leaves":    {plans.Tighten, nil, "2/Reserve"},
		"its own, when it would leave": {plans.Shrink, nil, "2/Reserve"},
		"the next, when it comes up":   {plans.Grow, nil, "1/Reserve"},
		"none while it is down":        {plans.Vacate, nil, ""},
		"none in one cluster":          {plans.Grow, func(e *Engine) { e.plan.Destination.Cluster = "uid-0" }, ""},
		"none without volumes":         {plans.Grow, func(e *Engine) { e.plan.Claims = nil }, ""},
		"none before a pause":          {plans.Grow, func(e *Engine) { e.journal.Paused = true }, ""},
		"none behind a pause":          {plans.Grow, func(e *Engine) { e.journal.PauseAt = 2 }, ""},
		"none behind the last": {plans.Grow, func(e *Engine) {
			e.journal.Leg.Lowest = 2
		}, ""},
		"none that may not have left": {plans.Tighten, func(e *Engine) { e.journal.StartLeg(e.plan, plans.Abort) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, step := apart(t, c.op, nothing, nothing)
			if err := e.recall(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(e)
			}
			if e.journal.Leg.Direction == plans.Abort {
				e.journal.Leg.Lowest = 2
				step, _ = e.plan.Step(e.journal.Leg, e.journal.Leg.First)
			}
			next, may := e.following(step)
			got := ""
			if may {
				got = next.ID()
			}
			if got != c.want {
				t.Errorf("%q is prepared, expected %q", got, c.want)
			}
		})
	}
}

// The wave is in the journal before anything of it is made (S10).
func TestWhatIsPreparedIsInTheJournalFirst(t *testing.T) {
	waits := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Wait(reasons.PodNotReady, "it comes up"), nil
	}
	sent := 0
	e, step := apart(t, plans.Grow, waits, due(&sent, nil))
	if err := e.recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, did := e.ahead(t.Context(), step); did || sent > 0 {
		t.Error("a wave is prepared that is not in the journal")
	}
	e.journal.Prepared = &plans.Slice{Start: 1, Replicas: 1}
	if err := e.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, did := e.ahead(t.Context(), step)
	if !did || sent != 1 || p.Step.ID() != "1/Reserve" {
		t.Errorf("%+v, %t, sent %d times", p, did, sent)
	}
	if _, did := e.ahead(t.Context(), step); did {
		t.Error("it is prepared twice")
	}
}

// A wave that could leave is prepared first, and stays up if it cannot be (S17).
func TestAWaveLeavesOnlyWhenItIsPrepared(t *testing.T) {
	left := 0
	leaves := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Write("scale down", plans.Undo{Flight: &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}}, func(context.Context) error { left++; return nil }), nil
	}
	refused, sent := errors.New("the other cluster refuses it"), 0
	e, _ := apart(t, plans.Shrink, leaves, due(&sent, refused))
	if _, err := e.Advance(t.Context()); !errors.Is(err, refused) || left > 0 {
		t.Errorf("%v, and %d have left", err, left)
	}
	if j := stored(t, e); j.Prepared == nil || j.Prepared.Start != 2 || j.Begun >= j.Done+2 {
		t.Errorf("the journal: %+v", j)
	}
	e, _ = apart(t, plans.Shrink, leaves, func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil })
	if p, err := e.Advance(t.Context()); err != nil || p.Kind != Wrote || left != 1 {
		t.Errorf("%+v, %v, and %d have left", p, err, left)
	}
}

// What keeps a wave from being prepared has nothing in flight.
func TestAWaveThatCannotBePreparedStaysUp(t *testing.T) {
	leaves := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Write("scale down", plans.Undo{Flight: &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}}, func(context.Context) error {
			t.Error("it has left")
			return nil
		}), nil
	}
	for kind, observed := range map[Kind]plans.Observation{Waiting: plans.Wait(reasons.PodNotReady, "is Pending"), Blocked: plans.Stop(reasons.OrdinalsChanged, "is in the way")} {
		e, _ := apart(t, plans.Shrink, leaves, func(context.Context, plans.StepContext) (plans.Observation, error) { return observed, nil })
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != kind || p.Reason != observed.Reason {
			t.Errorf("%+v, %v", p, err)
		}
		if j := stored(t, e); j.Down(e.plan) {
			t.Errorf("ordinals are in flight: %+v", j)
		}
	}
}
