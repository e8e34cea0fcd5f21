package engine

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// While the places of a wave are not there, no budget is tightened for it, and no check is made that would be too old when they
// are (S19).
func TestNothingIsTightenedOrCheckedBeforeThePlacesAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tightened := 0
		tightens := see(plans.Write("tighten", plans.Undo{}, func(context.Context) error { tightened++; return nil }))
		e, step := apart(t, plans.Tighten, tightens, see(plans.Wait(reasons.PlaceNotReady, "it has no node")))
		e.plan.Placeholder.Proof = plans.Warm
		e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
			t.Error("the checks are made")
			return wavecheck.Answer{}, nil
		}
		p, err := e.Advance(t.Context())
		synctest.Wait()
		if err != nil || p.Kind != Waiting || p.ID != reasons.PlaceNotReady || p.Step != step || tightened > 0 || stored(t, e).Begun >= step.Seq {
			t.Errorf("%+v, %v; tightened %d times", p, err, tightened)
		}
		e.CheckWave, e.preparation.look = nil, see(plans.Done())
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != Wrote || tightened != 1 {
			t.Errorf("%+v, %v; tightened %d times", p, err, tightened)
		}
	})
}

// Nothing of the places is looked at before a step of a wave that is down. It is while such a step waits.
func TestAWaveThatIsDownDoesNotWaitForPlaces(t *testing.T) {
	for _, op := range []plans.Op{plans.Vacate, plans.Release, plans.Reserve, plans.Claim, plans.Grow} {
		for _, step := range []plans.Observation{plans.Done(), plans.Wait(reasons.PodNotReady, "it comes up")} {
			looked := 0
			e, _ := scripted(t, op, see(step))
			e.plan.Placeholder.Proof = plans.Warm
			e.yielding.yield = see(plans.Done())
			e.yielding.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
				looked++
				return plans.Done(), nil
			}
			if _, err := e.Advance(t.Context()); err != nil {
				t.Errorf("%s: %v", op, err)
			}
			if waits := step.Standing == plans.During; waits != (looked == 1) {
				t.Errorf("%s, it waits %t: looked %d times", op, waits, looked)
			}
		}
	}
}

// The place of an ordinal is given free as soon as its pod has gone, once, and without a write of the journal: the ordinal is
// down meanwhile.
func TestAPlaceIsGivenFreeWithoutAWriteOfTheJournal(t *testing.T) {
	e, step := scripted(t, plans.Vacate, see(plans.Wait(reasons.PodLeaving, "it is leaving")))
	e.plan.Placeholder.Proof = plans.Warm
	deleted := 0
	e.yielding.yield = see(plans.Write("delete", plans.Undo{}, func(context.Context) error { deleted++; return nil }))
	e.yielding.look = see(plans.Done())
	before := stored(t, e).Timeline.Sent
	for range 3 {
		if p, err := e.Advance(t.Context()); err != nil || p.Step != step {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if after := stored(t, e); deleted != 1 || after.Timeline.Sent != before || after.Begun >= step.Seq {
		t.Errorf("deleted %d times; the journal: %+v", deleted, after)
	}
}
