package journal

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Limit sets the route of a Move. It works where no wave is in flight, even if one has tightened the
// budgets and waits. From there it divides the ordinals into new waves: the first is as large as
// needed for the pause to come after exactly that many ordinals.
func (j *Journal) Limit(p *plans.Plan, r plans.Limits) error {
	if j.Leg.Direction != plans.Move {
		return fmt.Errorf("plan %s is not being moved to the destination: --until-ordinal and --pause-after have no effect", p.Name)
	}
	if r.PauseAfter < 0 {
		return fmt.Errorf("--pause-after %d: expected a number of ordinals", r.PauseAfter)
	}
	if j.Outcome == plans.Split {
		j.StartLeg(p, plans.Move)
	}
	step, began, more := j.Next(p)
	switch {
	case !more:
		return fmt.Errorf("plan %s has no ordinal left to move", p.Name)
	case step.Moves() && (!step.Op.Tightens() || j.Unsure(step)):
		if r == (plans.Limits{}) {
			return nil
		}
		return fmt.Errorf("plan %s has ordinals %s in flight: --until-ordinal and --pause-after can be given when they have arrived; run without them, or `pause` first", p.Name, step.Ordinals)
	}
	top := j.Leg.End
	if step.Moves() {
		top = step.Ordinals.End()
	}
	lowest, err := lowestTo(p, r, top)
	if err != nil {
		return err
	}
	j.behind(p, top, began && step.Op.Tightens())
	j.Leg.Lowest, j.Leg.Head, j.PauseAt = lowest, r.PauseAfter%p.Window, 0
	if at := top - r.PauseAfter; r.PauseAfter > 0 && at > lowest {
		j.PauseAt = at
	}
	return nil
}

// lowestTo returns the lowest ordinal that is to move. Those below top are still on the source.
func lowestTo(p *plans.Plan, r plans.Limits, top int32) (int32, error) {
	lowest := p.Start
	if r.Until != nil {
		lowest = *r.Until
	}
	if lowest < p.Start || lowest >= top {
		return 0, fmt.Errorf("--until-ordinal %d: expected an ordinal from %d to %d, those that are still on the source of plan %s", lowest, p.Start, top-1, p.Name)
	}
	return lowest, nil
}

// behind puts the waves that are still to come, from top downwards, after the steps that have begun.
// The leg of Freeze and Protect is kept while none of its waves has begun.
func (j *Journal) behind(p *plans.Plan, top int32, began bool) {
	switch {
	case top < p.End():
		j.Leg, j.Done = plans.Leg{Direction: plans.Move, First: j.Begun + 1, End: top}, j.Begun
	case began:
		j.Leg.First, j.Done = j.Leg.First+j.Begun-j.Done, j.Begun
	}
}

// PauseDue reports whether the step is the first of a wave before which a pause is requested.
func (j *Journal) PauseDue(s plans.Step) bool {
	return j.PauseAt > 0 && s.Op.Tightens() && j.Leg.Direction == plans.Move && s.Ordinals.End() <= j.PauseAt
}

// Skip records the user's request to continue without gates: for a Move, without those of the step under
// way or of the next step that has any; for an Abort, without any. A wave that is to leave is asked about until it has.
func (j *Journal) Skip(p *plans.Plan) error {
	if len(p.Gates) == 0 || j.Leg.Direction == plans.Finalize {
		return fmt.Errorf("--skip-gates: plan %s has no gates to skip", p.Name)
	}
	if j.Leg.Direction == plans.Abort {
		j.SkipGates = plans.AllSteps
		return nil
	}
	first := j.Done + 1
	if s, more := p.Step(j.Leg, first); more && s.Op.Leaves() {
		first--
	}
	for seq := first; ; seq++ {
		s, more := p.Step(j.Leg, seq)
		if !more {
			return fmt.Errorf("--skip-gates: plan %s has no gate left to skip", p.Name)
		}
		if len(p.GatesAt(s.Op)) > 0 {
			j.SkipGates = seq
			return nil
		}
	}
}

// Skipped describes the gates that are or were skipped, or returns "".
func (j *Journal) Skipped(p *plans.Plan) string {
	s, more := p.Step(j.Leg, j.SkipGates)
	switch {
	case j.SkipGates == 0:
		return ""
	case !more:
		return "skipped during the abort (--skip-gates)"
	default:
		return fmt.Sprintf("skipped at %s %s (--skip-gates)", p.Pods(s.Ordinals), s.Op)
	}
}
