package requests

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Direct gives the plan the direction of a request, and the limits of a request to turn that comes from no Declaration.
func Direct(p *plans.Plan, j *journal.Journal, w plans.Command) error {
	if !w.Turns {
		return Redirect(p, j, w.Direction)
	}
	if err := Turn(p, j); err != nil || w.Observed != nil || w.Limits == (plans.Limits{}) {
		return err
	}
	return j.Limit(p, w.Limits)
}

// Redirect changes the plan to this direction, or returns an error if it cannot go there from where it is. Move continues
// as the journal states.
func Redirect(p *plans.Plan, j *journal.Journal, direction plans.Direction) error {
	is := j.Leg.Direction
	switch {
	case j.Ended():
		return ended(p, j)
	case direction == plans.Move || direction == is:
		return nil
	case direction == plans.Abort && is == plans.Finalize:
		if err := turns(p, j); err != nil {
			return err
		}
	case direction == plans.Finalize && is == plans.Abort:
		return impossible("plan %s is being aborted; abort finishes that, and apply turns it to the destination again", p.Name)
	case direction == plans.Finalize && j.Outcome != plans.Moved:
		return impossible("plan %s is not complete: not every ordinal is on the destination; run apply, or abort", p.Name)
	}
	j.StartLeg(p, direction)
	return nil
}

// Turn turns a plan that is being aborted or finalized to the destination again, or returns an error if it cannot go
// there any more. A plan that is being moved goes on.
func Turn(p *plans.Plan, j *journal.Journal) error {
	switch {
	case j.Ended():
		return ended(p, j)
	case j.Leg.Direction == plans.Move:
		return nil
	}
	if err := turns(p, j); err != nil {
		return err
	}
	j.StartLeg(p, plans.Move)
	return nil
}

// turns returns the reason why a plan cannot be turned any more, or nil.
func turns(p *plans.Plan, j *journal.Journal) error {
	doing, again := "aborted", "abort"
	if j.Leg.Direction == plans.Finalize {
		doing, again = "finalized", "finalize"
	}
	if gone := j.Parted(p); gone != "" {
		return impossible("plan %s is being %s, and can no longer be turned: %s; every ordinal is where it stays: run %s again to finish it", p.Name, doing, gone, again)
	}
	if j.Assurances.SourceGone {
		return impossible("plan %s is being finalized without the cluster of its source, which is gone as the user has confirmed; run finalize again", p.Name)
	}
	return nil
}

func ended(p *plans.Plan, j *journal.Journal) error {
	return reasons.Because(reasons.PlanEnded, fmt.Errorf("plan %s has ended (%s); nothing is left to do", p.Name, j.Outcome))
}

func impossible(format string, args ...any) error {
	return reasons.Because(reasons.DirectionImpossible, fmt.Errorf(format, args...))
}
