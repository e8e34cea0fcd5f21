package plans

import "fmt"

// Direction is a direction in which a plan is carried out.
type Direction string

const (
	// Move takes the ordinals from source to destination, highest first.
	Move Direction = "Move"
	// Abort aborts: it moves back the ordinals that Move moved, the last one first, and restores the
	// source field for field.
	Abort Direction = "Abort"
	// Finalize finalizes: it removes the source and the migration's annotations after a finished Move.
	Finalize Direction = "Finalize"
)

// Leg is one pass over a plan: a direction, the Seq of its first step, and the ordinals [Lowest, End). A
// Move takes these from the top, an Abort from the bottom. Finalize has none.
type Leg struct {
	// Direction is Move, Abort or Finalize.
	Direction Direction `json:"direction"`
	// First is the number of the first step of the leg.
	First int `json:"first"`
	// Lowest is the lowest ordinal of the plan for a Move of everything, and higher for a Move that ends in a split. For an
	// Abort it is the lowest ordinal that may have left the source.
	Lowest int32 `json:"lowest"`
	// End is the ordinal after the highest one of the leg.
	End int32 `json:"end"`
	// Head is how many ordinals the first wave has; 0 for as many as the others.
	Head int32 `json:"head,omitempty"`
	// Arrived reports that the first wave of an Abort, or of a Move that is Turned, had arrived when the plan was turned:
	// it leaves like every other one. Otherwise it may be on either side, or on neither.
	Arrived bool `json:"arrived,omitempty"`
	// Turned reports that this is a Move again after an Abort had begun, or Finalize. It has waves only, since everything
	// is protected.
	Turned bool `json:"turned,omitempty"`
}

// Opens reports whether the leg begins with the steps that protect everything.
func (l Leg) Opens(p *Plan) bool { return l.Direction == Move && l.End == p.End() && !l.Turned }

// FirstClosing returns the number of the first step that ends the plan in the direction of a leg, and 0 for a Move.
func (p *Plan) FirstClosing(l Leg) int {
	switch r := (route{p, l}); l.Direction {
	case Finalize:
		return l.First
	case Abort:
		return l.First + r.waves()*len(r.perWave())
	case Move:
	}
	return 0
}

// FirstWave returns the ordinals of the first wave of a leg, and none if it has no waves.
func (p *Plan) FirstWave(l Leg) Slice {
	if l.Direction == Finalize {
		return Slice{}
	}
	return route{p, l}.wave(0)
}

// FirstLeg returns the leg of a plan that has not begun: a Move of all ordinals.
func (p *Plan) FirstLeg() Leg {
	return Leg{Direction: Move, First: 1, Lowest: p.Start, End: p.End()}
}

func (l Leg) head(p *Plan) int32 {
	if l.Head > 0 {
		return min(l.Head, l.End-l.Lowest)
	}
	return min(p.Window, l.End-l.Lowest)
}

// Outcome returns the outcome of a finished leg of this direction, if no ordinals are left.
func (c Direction) Outcome() Outcome {
	switch c {
	case Abort:
		return Aborted
	case Finalize:
		return Finalized
	case Move:
		return Moved
	}
	return Moved
}

// Outcome returns the outcome of this leg when it is finished.
func (l Leg) Outcome(p *Plan) Outcome {
	if l.Direction == Move && l.Lowest > p.Start {
		return Split
	}
	return l.Direction.Outcome()
}

// Outcome is how a leg ended.
type Outcome string

const (
	// Moved means that every ordinal is on the destination; finalize or abort is next.
	Moved Outcome = "Moved"
	// Split means that the ordinals from the leg's Lowest upwards are on the destination. The others
	// stay on the source until the plan is resumed or aborted.
	Split Outcome = "Split"
	// Finalized means that the source is cleaned up. Nothing is left to do.
	Finalized Outcome = "Finalized"
	// Aborted means that everything is back on the source. Nothing is left to do.
	Aborted Outcome = "Aborted"
)

// Validate returns the reason why the leg cannot be one of the plan.
func (l Leg) Validate(p *Plan) error {
	lowest := p.Start
	switch l.Direction {
	case Move:
	case Abort:
		lowest = l.Lowest
	case Finalize:
		lowest = p.End()
	default:
		return fmt.Errorf("leg.direction is %q, expected %s, %s or %s", l.Direction, Move, Abort, Finalize)
	}
	switch {
	case l.First < 1 || l.First > AllSteps/2:
		return fmt.Errorf("leg.first is %d, expected the number of a step", l.First)
	case l.Lowest < lowest || !l.within(p):
		return fmt.Errorf("its leg (%s) is of the ordinals from %d to %d, expected those of the plan, %s", l.Direction, l.Lowest, l.End-1, p.Ordinals())
	case l.Turned && l.Direction != Move:
		return fmt.Errorf("leg.turned is true on a %s, expected it only on a Move", l.Direction)
	case l.Head < 0 || l.Head > p.Window:
		return fmt.Errorf("leg.head is %d, expected at most the window of the plan, %d", l.Head, p.Window)
	}
	return nil
}

// within reports whether the ordinals of the leg are ordinals of the plan. Only a Move may end below the highest one.
func (l Leg) within(p *Plan) bool {
	return p.Start <= l.Lowest && l.Lowest <= l.End && l.End <= p.End() && (l.Direction == Move || l.End == p.End())
}

// Length returns the number of steps of a leg.
func (p *Plan) Length(l Leg) int {
	r := route{p, l}
	waves, shared := r.waves()*len(r.perWave()), min(len(p.Shared), 1)
	switch {
	case l.Direction == Finalize:
		waves = 0
	case l.Opens(p):
		return 1 + int(p.Count) + shared + waves
	case l.Direction == Move:
		return waves
	}
	return waves + 1 + int(p.Count) + shared + 1
}
