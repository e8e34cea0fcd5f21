package journal

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan can be turned as often as its user wants, until its closing steps have begun to delete. Each turn starts a leg.
// The first wave of that leg is the one that the leg before may have touched last: it may be on either side, or on
// neither, and the looks find out which.

// StartLeg starts a new leg after every step that may have written so far.
func (j *Journal) StartLeg(p *plans.Plan, c plans.Direction) {
	next := plans.Leg{Direction: c, First: j.Begun + 1, Lowest: p.End(), End: p.End()}
	wave, sure := j.lastWave(p)
	switch c {
	case plans.Abort:
		next.Lowest, next.Head = wave.Start, wave.Replicas
		next.Arrived = sure && wave.Start < p.End()
	case plans.Move:
		next.Lowest = p.Start
		switch left := j.Leg.Lowest < p.End(); {
		case j.Leg.Direction == plans.Move: // continue from a split
			next.End = j.Leg.Lowest
		case j.Leg.Direction == plans.Finalize || left:
			next.End, next.Head = wave.End(), wave.Replicas
			next.Arrived, next.Turned = sure, true
		default: // nothing had left: everything from the first step on is looked at again
		}
	case plans.Finalize:
	}
	if j.Flight != nil && j.Flight.Seq == 0 { // written by an earlier release, or found on the objects
		before := *j.Flight
		before.Seq, j.Flight = max(j.Begun, 1), &before
	}
	j.Leg, j.Done = next, j.Begun
	j.Outcome, j.Paused, j.PauseAt, j.Resting = "", false, 0, false
	j.Unblock()
	j.Passed, j.SkipGates, j.Overdue, j.Assurances.Ignored = nil, 0, "", nil
	j.Assurances.SkipPlaces, j.Timeline.Placed = 0, nil
	j.KeepNames = j.KeepNames && c == plans.Finalize // only an ended plan has names to keep
}

// lastWave returns the wave that the leg may have touched last: the one under way, or else the last one that arrived. If
// there is none, it is empty, at the start of the ordinals that are on the destination. sure reports that it is not under
// way.
func (j *Journal) lastWave(p *plans.Plan) (wave plans.Slice, sure bool) {
	step, began, more := j.Next(p)
	last, begun := p.Step(j.Leg, j.Begun)
	first := p.FirstWave(j.Leg)
	switch {
	case j.Leg.Direction == plans.Finalize:
		return plans.Slice{Start: p.Start}, true
	case begun && last.Moves():
		return last.Ordinals, !began && (!more || step.Ordinals != last.Ordinals)
	case begun && last.Op.Closes(): // everything is back on the source
		return plans.Slice{Start: p.End()}, true
	case !begun && j.uncertain() && first.Replicas > 0:
		return first, false
	case j.Leg.Direction == plans.Abort:
		return plans.Slice{Start: j.Leg.Lowest}, true
	}
	return plans.Slice{Start: j.Leg.End}, true
}

// uncertain reports whether the leg has begun with a wave under way.
func (j *Journal) uncertain() bool {
	return (j.Leg.Direction == plans.Abort || j.Leg.Turned) && !j.Leg.Arrived
}

// Unsure reports whether the wave of this step was under way when the plan was turned, so that it may be on either side,
// or on neither. Everything that the earlier leg did not reach is then already as it should be. It becomes false when the
// ordinals are found on the side that they leave, and leave it.
func (j *Journal) Unsure(s plans.Step) bool {
	if !s.Moves() || !j.uncertain() || j.Flight.LeavesBy(s) && (j.Flight.Seq == 0 || j.Flight.Seq >= j.Leg.First) {
		return false
	}
	if j.Leg.Direction == plans.Move {
		return s.Ordinals.End() == j.Leg.End
	}
	return s.Ordinals.Start == j.Leg.Lowest
}

// Parted says what the closing steps of the leg delete, or have given back, or returns "". From then on the plan cannot
// be turned.
func (j *Journal) Parted(p *plans.Plan) string {
	from, retire := plans.Source, p.FirstClosing(j.Leg)
	if j.Leg.Direction == plans.Abort {
		from = plans.Destination
	}
	set := p.On(from).Set()
	switch {
	case j.Leg.Direction == plans.Move:
		return ""
	case j.Saved.Retired != "" && max(j.Done, j.Begun-1) >= retire:
		return fmt.Sprintf("%s (UID %s) is deleted, and the volumes are being given back", set, j.Saved.Retired)
	case j.Saved.Retired != "":
		return fmt.Sprintf("the deletion of %s (UID %s) was announced, and it is deleted or about to be; nothing else is deleted yet", set, j.Saved.Retired)
	case j.Begun > retire:
		return fmt.Sprintf("%s has no ordinals left, and the volumes are being given back", set)
	}
	return ""
}
