package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/muster"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// observer looks at the steps of a plan, and knows what was answered for the wave that is about to leave.
type observer struct {
	*memory

	looks map[plans.Op]plans.Look
	// reads is the cache that the looks read through. It holds what the last look has read.
	reads *clusters.ReadCache
	world sets.Steps

	checks  wavecheck.Checks
	checked bool // whether checks knows of Checks
	// roll knows how the ordinals were at the last count.
	roll muster.Roll
	// follows reports whether the wave of a Tighten follows the one before it at once.
	follows func(plans.Step) bool
}

// see returns how a step stands. It first checks whether the step may begin. A conflict counts only if a second look,
// with nothing of the first one, sees one too: the first may have put together what was never so at one time, such as
// before and after a write of a former process that arrives late.
func (ob *observer) see(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	observed, err := ob.seeOnce(ctx, step, began)
	if err == nil && observed.Standing == plans.Conflict {
		ob.Recent.Forget()
		observed, err = ob.seeOnce(ctx, step, began)
	}
	ob.retainPermit(step, observed, err)
	return observed, err
}

func (ob *observer) seeOnce(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	observed, err := ob.barred(ctx, step, began)
	if err != nil || observed.Standing != plans.After {
		return observed, err
	}
	observed, err = ob.lookAt(ctx, step, began)
	if err != nil || !unasked(step, began, observed) {
		return observed, err
	}
	if s, err := ob.barred(ctx, step, false); err != nil || s.Standing != plans.After {
		return s, err
	}
	return ob.lookAt(ctx, step, began)
}

// barred returns an observation that stops a wave which must not go; otherwise it returns After.
func (ob *observer) barred(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	ob.checks.Reached(step, ob.Now)
	if ob.CheckWave == nil || began {
		return plans.Done(), nil
	}
	if ob.journal.Unsure(step) { // of a wave that is down, nothing is lost when it goes where it came from
		ob.reads.Clear()
		if serves, err := ob.world.Serves(ctx, step); err != nil || !serves {
			return plans.Done(), err
		}
	}
	if placesFirst(ob.plan, ob.journal, step) {
		return plans.Done(), nil // Shrink asks, when the places are there
	}
	if ob.Checks != nil && !ob.checked && ob.journal.Leg.Direction == plans.Move {
		ob.checked = true
		ob.checks.Passed(ob.plan.Ordinals(), ob.journal.Leg, ob.Checks.At.Time)
	}
	j := *ob.journal // the check runs beside this process, which changes its own
	wave := wavecheck.Wave{Step: step, Leg: j.Leg, Next: func(seq int) (plans.Step, bool) { return ob.plan.Step(j.Leg, seq) }}
	why, err := ob.checks.Bars(ctx, wave, ob.Now, func(ctx context.Context, about plans.Slice) (wavecheck.Answer, error) {
		return ob.CheckWave(ctx, &j, about)
	})
	if err != nil || why == "" {
		return plans.Done(), err
	}
	return plans.Stop(reasons.ChecksFailed, why), nil
}

// lookAt looks at a step as the journal has it.
func (ob *observer) lookAt(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	return ob.look(ctx, ob.moment(ob.journal, step, began))
}

// look looks at a step with an empty read cache.
func (ob *observer) look(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	ob.reads.Clear()
	ob.reads.Volumes = map[string]bool{}
	if m.InFlight() {
		for _, v := range m.Flight.Volumes {
			ob.reads.Volumes[v.Name] = true
		}
	}
	m, err := ob.world.Found(ctx, m)
	if err != nil {
		return plans.Observation{}, err
	}
	return ob.looks[m.Op](ctx, m)
}

func (ob *observer) moment(j *journal.Journal, s plans.Step, began bool) plans.StepContext {
	m := j.At(ob.plan, s, began, plans.Stamp{Plan: ob.plan.ID, Epoch: ob.epoch, Seq: s.Seq})
	m.Follows, m.Unfit = ob.follows(s), ob.checks.Unfit(s)
	return m
}

// inPlace returns why what has moved is not in its place, or "".
func (ob *observer) inPlace(ctx context.Context) (string, error) {
	ob.reads.Clear()
	return sets.Ending{Pair: ob.world.Pair}.InPlace(ctx, ob.journal.Leg.Lowest)
}

// awaits looks at the step at which the plan is, with nothing that was answered for the wave before.
func (ob *observer) awaits(ctx context.Context) (plans.Step, plans.Observation, error) {
	ob.journal.Done = max(ob.journal.Done, ob.passed)
	step, began, more := ob.journal.Next(ob.plan)
	if !more || ob.journal.Wave(step).Away {
		return step, plans.Observation{}, nil
	}
	observed, err := ob.lookAt(ctx, step, began)
	return step, observed, err
}

// waitsFor returns what the step waits for. Its Reason is "" if that cannot be read or if it waits for nothing.
func (ob *observer) waitsFor(ctx context.Context, j *journal.Journal, step plans.Step, began bool, holder string) plans.Observation {
	s, err := ob.look(ctx, ob.moment(j, step, began))
	switch {
	case err != nil:
		return plans.Observation{Standing: plans.During}
	case s.Standing != plans.Before:
		return s
	case j.Detached && holder != "" && begins(j, step):
		return plans.Wait(reasons.WavesAtLimit, waitsForPermit)
	}
	return plans.Observation{}
}

// void makes what the application and the checks have answered for a wave count for nothing (S19).
func (ob *observer) void() {
	ob.checks = wavecheck.Checks{}
	if ob.Voided != nil {
		ob.Voided()
	}
	ob.Gates.Void()
	ob.world.Twice.Void()
}

// unasked reports whether a wave would leave now whose checks this process has not made: an earlier one has recorded that it
// leaves, perhaps long ago, and has not sent the write.
func unasked(step plans.Step, began bool, observed plans.Observation) bool {
	return began && step.Op.Leaves() && observed.Standing == plans.Before
}
