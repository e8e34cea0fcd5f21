package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Places are kept while a plan waits for them, or briefly for something else, and taken away once in a wait that is long.
func TestPlacesAreKeptForAsLongAsTheyMayBeNeededSoon(t *testing.T) {
	for name, c := range map[string]struct {
		op    plans.Op
		id    reasons.ID
		after []time.Duration
		want  int
	}{
		"a short wait":                {plans.Shrink, reasons.GateFailed, []time.Duration{0, 4 * time.Minute}, 0},
		"a long one":                  {plans.Shrink, reasons.GateFailed, []time.Duration{0, 4 * time.Minute, 6 * time.Minute, time.Hour}, 1},
		"for its own place":           {plans.Shrink, reasons.PlaceNotReady, []time.Duration{0, time.Hour, 2 * time.Hour}, 0},
		"while the pods of it end":    {plans.Vacate, reasons.PodTerminating, []time.Duration{0, time.Hour}, 0},
		"for the wave that comes up":  {plans.Grow, reasons.PodNotReady, []time.Duration{0, time.Hour}, 1},
		"for a permit, before a wave": {plans.Tighten, reasons.WavesAtLimit, []time.Duration{0, time.Hour}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, step := scripted(t, c.op, see(plans.Done()))
			e.plan.Placeholder.Proof = plans.Warm
			taken := 0
			e.easing.clear = func(context.Context, plans.StepContext) (plans.Observation, error) {
				if taken > 0 {
					return plans.Done(), nil
				}
				return plans.Write("delete", plans.Undo{}, func(context.Context) error { taken++; return nil }), nil
			}
			began := time.Unix(0, 0)
			for _, after := range c.after {
				e.Now = func() time.Time { return began.Add(after) }
				if err := e.yielding.wait(t.Context(), Progress{Kind: Waiting, Step: step, ID: c.id}); err != nil {
					t.Fatal(err)
				}
			}
			if taken != c.want {
				t.Errorf("taken away %d times, expected %d", taken, c.want)
			}
		})
	}
}

// A placeholder whose deletion is refused keeps no step from going on: after a few refusals it is left where it is.
func TestAPlaceholderThatCannotBeDeletedHoldsNothingUp(t *testing.T) {
	e, step := scripted(t, plans.Grow, see(plans.Wait(reasons.PodNotReady, "it comes up")))
	e.plan.Placeholder.Proof = plans.Warm
	tried := 0
	e.yielding.look = see(plans.Write("delete", plans.Undo{}, func(context.Context) error { tried++; return errors.New("a webhook says no") }))
	for range 5 {
		if _, err := e.Advance(t.Context()); err == nil {
			t.Fatal("the refusal is not reported")
		}
	}
	if p, err := e.Advance(t.Context()); err != nil || p.Kind != Waiting || p.Step != step || tried != 5 {
		t.Errorf("%+v, %v, tried %d times", p, err, tried)
	}
}

// What takes placeholders away is not sent once another process has the plan.
func TestAProcessThatIsOvertakenTakesNoPlaceholderAway(t *testing.T) {
	e, _ := scripted(t, plans.Grow, see(plans.Wait(reasons.PodNotReady, "it comes up")))
	e.plan.Placeholder.Proof = plans.Warm
	e.yielding.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
		changed(t, e, func(j *journal.Journal) { j.Epoch++ })
		return plans.Write("delete", plans.Undo{}, func(context.Context) error { t.Error("it was sent"); return nil }), nil
	}
	if _, err := e.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := e.Advance(t.Context()); err != nil || !p.Overtaken {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRefusalsAreCountedByWhatIsRefused(t *testing.T) {
	r := placeholder.Refusals{}
	if s := r.Given(plans.Done()); s.Standing != plans.After {
		t.Errorf("%+v", s)
	}
}
