package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// protecting is an engine that protects the volumes of three ordinals. It returns what it does, in order: its looks, its
// writes, and whether the intent of each write was in the journal.
func protecting(t *testing.T, see func(ordinal int32, sent bool) plans.Observation) (*Engine, *[]string) {
	t.Helper()
	var did []string
	sent := map[int32]bool{}
	var e *Engine
	e, _ = scripted(t, plans.Protect, func(_ context.Context, m plans.StepContext) (plans.Observation, error) {
		o := m.Ordinals.Start
		did = append(did, fmt.Sprint("look ", o))
		s := see(o, sent[o])
		if s.Standing == plans.Before {
			s.Write = func(context.Context) error {
				if j := stored(t, e); m.Seq > j.Begun {
					t.Errorf("ordinal %d is written before its intent: step %d, begun %d", o, m.Seq, j.Begun)
				}
				did, sent[o] = append(did, fmt.Sprint("write ", o)), true
				return nil
			}
		}
		return s, nil
	})
	return e, &did
}

func protects(_ int32, sent bool) plans.Observation {
	if sent {
		return plans.Done()
	}
	return plans.Write("Retain", plans.Undo{}, nil)
}

// Volumes are looked at together, and written one after the other. The next look at each observes its write.
func TestVolumesAreLookedAtTogether(t *testing.T) {
	e, did := protecting(t, protects)
	for range 6 {
		if _, err := e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"look 0", "look 1", "look 2", "write 0", "look 0", "write 1", "look 1", "write 2", "look 2"}
	if !slices.Equal(*did, want) {
		t.Errorf("%q, expected %q", *did, want)
	}
}

// What one look of them finds ends the batch, and is found again by a look of its own.
func TestABatchEndsWithTheFirstThatIsNotDue(t *testing.T) {
	e, did := protecting(t, func(o int32, sent bool) plans.Observation {
		if o == 1 {
			return plans.Stop(reasons.BindingBroken, "is not bound")
		}
		return protects(o, sent)
	})
	var last Progress
	for range 3 {
		var err error
		if last, err = e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"look 0", "look 1", "write 0", "look 0", "look 1", "look 1"}
	if !slices.Equal(*did, want) || last.Kind != Blocked {
		t.Errorf("%q, expected %q; %+v", *did, want, last)
	}
}

// A step whose intent is not in the journal gets a look of its own, whatever was looked at before.
func TestABatchIsNotWrittenBeforeItsIntent(t *testing.T) {
	e, did := protecting(t, protects)
	step, _ := e.plan.Step(stored(t, e).Leg, 2)
	e.batch.ready = map[int]plans.Observation{step.Seq: plans.Write("Retain", plans.Undo{}, func(context.Context) error {
		t.Error("it was written")
		return nil
	})}
	if _, err := e.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(*did, "look 0") {
		t.Errorf("%q", *did)
	}
}

// A process that was overtaken between the looks and the writes sends none of them (S9).
func TestABatchIsNotWrittenAfterATakeover(t *testing.T) {
	var e *Engine
	e, did := protecting(t, func(o int32, sent bool) plans.Observation {
		if o == 2 {
			changed(t, e, func(j *journal.Journal) { j.Epoch++ })
		}
		return protects(o, sent)
	})
	if _, err := e.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := e.Advance(t.Context()); err != nil || !p.Overtaken || slices.Contains(*did, "write 0") {
		t.Errorf("%q, %+v, %v", *did, p, err)
	}
}
