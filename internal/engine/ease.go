package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// easing opens the budgets of a wave that has not left.
type easing struct {
	*memory

	observer *observer
	on       clusters.Clusters
	way      *drainWay
	clear    plans.Look // takes all placeholders away
}

// unplace takes the placeholders away while the plan rests: they would keep room from others for hours. The
// next wave makes its own again.
func (ea *easing) unplace(ctx context.Context) error {
	if !ea.plan.Placeholder.Used() {
		return nil
	}
	if err := ea.recall(ctx); err != nil || ea.journal.Epoch != ea.epoch {
		return err
	}
	for range 3 { // some may have changed meanwhile
		s, err := ea.clear(ctx, plans.StepContext{Stamp: plans.Stamp{Plan: ea.plan.ID, Epoch: ea.epoch}})
		if err != nil || s.Standing != plans.Before {
			return err
		}
		if err := s.Write(ctx); writes.IgnoreAnswers(err) != nil {
			return fmt.Errorf("taking the placeholders away: %w", err)
		}
	}
	return nil
}

func (ea *easing) ease(ctx context.Context) (waits plans.Observation, err error) {
	if err := ea.recall(ctx); err != nil {
		return waits, err
	}
	step, tight := ea.tightened()
	if !tight {
		return waits, nil
	}
	if away, err := ea.away(ctx, step); err != nil || away {
		return waits, err
	}
	return ea.open(ctx, step)
}

// open opens the budgets for the wave of a Tighten, and returns what it still waits for; without a Reason it waits for
// nothing. The order must hold:
// the journal goes back to before Tighten FIRST, so that no process scales an ordinal down under open budgets
// (S3), and the process that continues tightens them again. That they are open is written LAST.
func (ea *easing) open(ctx context.Context, step plans.Step) (waits plans.Observation, err error) {
	j := ea.journal
	j.Done, ea.passed = step.Seq-1, 0
	j.Begun = max(j.Begun, step.Seq) // a Tighten that had nothing to write is not in the journal yet (S10)
	ea.observer.void()               // the wave may go much later
	ea.Permit.Release()
	if err := ea.save(ctx); err != nil {
		return waits, writes.IgnoreAnswers(err)
	}
	for range 3 * len(plans.Sides()) { // at most one write for each budget, and those of the sets
		ea.way.aside.Clear()
		s, err := ea.way.look(ctx, ea.observer.moment(j, step, true))
		if err != nil || s.Standing == plans.During {
			return s, err
		}
		if s.Standing != plans.Before {
			break // open, or no longer ours, which the next Tighten reports
		}
		if same, err := ea.unmoved(ctx); err != nil || !same {
			return waits, err
		}
		if err := s.Write(ctx); writes.IgnoreAnswers(err) != nil {
			return waits, fmt.Errorf("opening the budgets again: %w", err)
		}
	}
	if ea.Now == nil || j.TightSince == nil {
		return waits, nil
	}
	j.Loosened(ea.Now())
	return waits, writes.IgnoreAnswers(ea.save(ctx))
}

// turnedTight reports whether the wave before which a leg began may have left the budgets tight and the sets pinned: a
// plan that is turned takes no Relax of the earlier leg.
func (ea *easing) turnedTight(step plans.Step) bool {
	return step.Seq == ea.journal.Leg.First && (ea.Now == nil || ea.journal.TightSince != nil)
}

// tightened returns the Tighten of a wave that has begun and not left, and reports whether there is one. A wave that was
// to follow at once has left out the Relax before it, so its budgets are tight although it may not be in the journal yet.
func (ea *easing) tightened() (plans.Step, bool) {
	j := ea.journal
	j.Done = max(j.Done, ea.passed)
	step, began, more := j.Next(ea.plan)
	switch {
	case !more || j.Epoch != ea.epoch:
		return step, false
	case step.Op.Tightens():
		return step, began || ea.observer.follows(step) || ea.turnedTight(step)
	case step.Op.Stays(), step.Op.Leaves() && !began:
		for !step.Op.Tightens() {
			step, _ = ea.plan.Step(j.Leg, step.Seq-1)
		}
		return step, true
	}
	return step, false
}

// away reports whether the wave of a reversed plan is on neither side. The journal does not record whether
// the wave had arrived, nor whether it had left.
func (ea *easing) away(ctx context.Context, step plans.Step) (bool, error) {
	if !ea.journal.Unsure(step) {
		return false, nil
	}
	w := sets.Steps{Pair: clusters.Pair{Plan: ea.plan, On: ea.on}}
	var has []plans.Slice
	for _, side := range plans.Sides() {
		set, err := w.Set(ctx, side)
		if err != nil {
			return false, err
		}
		if set != nil {
			has = append(has, plans.SliceOf(set))
		}
	}
	for o := range step.Ordinals.All() {
		there := false
		for _, s := range has {
			there = there || s.Has(o)
		}
		if !there {
			return true, nil
		}
	}
	return false, nil
}

// openBudgets opens the budgets while a wave that has not left waits. Without one, they stay tight until the wave has
// arrived, or until the plan is paused or blocked, or the run ends.
type openBudgets struct {
	*memory

	easing *easing
	done   int  // the Seq of the Tighten that this process has eased, and for which it has written nothing since
	left   bool // that the last attempt within a pass has left something as it was
}

// turn eases where a wave that has not left waits for what ends only then, such as a rolling update that began just
// before its set was pinned. It returns the progress of that, and whether there is any.
func (e *openBudgets) turn(ctx context.Context, step plans.Step, observed plans.Observation) (Progress, bool, error) {
	if e == nil {
		return Progress{}, false, nil
	}
	if _, tight := e.easing.tightened(); !observed.Eases || !tight || e.done == step.Seq {
		return Progress{}, false, nil // or it is eased, and still waits
	}
	waits, err := e.easing.ease(ctx)
	again := observed.Again // what keeps it from being eased may last, and each attempt writes the journal
	if e.left = err != nil || waits.Reason != "" || e.journal == nil; !e.left {
		e.done, again = step.Seq, time.Millisecond
	}
	return Progress{Kind: Waiting, Step: step, ID: observed.ID, Reason: observed.Reason, Again: again}, true, err
}

// wrote takes notice of a write of a step.
func (e *openBudgets) wrote() {
	if e != nil {
		e.done = 0
	}
}

// settled takes notice that nothing is left as it was.
func (e *openBudgets) settled() {
	if e != nil {
		e.left = false
	}
}
