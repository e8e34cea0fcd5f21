package journal

import (
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Places returns how many ordinals are on the destination, and how many may be on neither side, by the journal.
func (j *Journal) Places(p *plans.Plan) (moved, inFlight int32) {
	switch {
	case j.Outcome == plans.Aborted:
		return 0, 0
	case j.Leg.Direction == plans.Finalize, j.Outcome == plans.Moved:
		return p.Count, 0
	}
	step, _, more := j.Next(p)
	back := j.Leg.Direction == plans.Abort
	switch {
	case back && (!more || !step.Moves()):
		return 0, 0
	case !more:
		return p.End() - j.Leg.Lowest, 0
	case !step.Moves():
		return p.End() - j.Leg.End, 0
	}
	there := j.wave(step, j.Down(p))
	if there == between {
		inFlight = step.Ordinals.Replicas
	}
	return p.Slice(plans.Destination, step.Ordinals, there == onDestination).Replicas, inFlight
}

// Wave returns where the ordinals of the wave of a step may be, until it is finished. Those of a plan that was turned may
// be anywhere until they are found where they arrive.
func (j *Journal) Wave(s plans.Step) plans.Places {
	if j.Unsure(s) && !s.Op.Arrived() {
		return plans.Places{Here: true, Away: true, There: true}
	}
	return s.Places(s.Seq <= j.Begun)
}

// place is where a wave is, by the journal.
type place int

const (
	onSource place = iota
	between
	onDestination
)

// wave returns where the wave of a step is. down reports that it may be on neither side.
func (j *Journal) wave(step plans.Step, down bool) place {
	from, to := onSource, onDestination
	if j.Leg.Direction == plans.Abort {
		from, to = to, from
	}
	switch {
	case step.Op.Arrived():
		return to
	case down:
		return between
	case j.Unsure(step): // it has not left the side that gets it back
		return to
	case step.Op.Receives():
		return to
	}
	return from
}

// Unbound returns a sentence about the volumes that the plan let go at its end although no claim of the set was bound to
// them, or "". Another writer has replaced these claims, and only the user knows which data is needed.
func (j *Journal) Unbound() string {
	if len(j.Saved.Left) == 0 {
		return ""
	}
	return fmt.Sprintf("no claim of the set was bound to %s at the end, since another writer deleted or replaced its claim; it keeps its reclaim policy: have a claim bound to it if the data is needed, or else delete it and its disk", plans.Line("volume "+strings.Join(j.Saved.Left, ", ")))
}
