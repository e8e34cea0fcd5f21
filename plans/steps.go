package plans

import "fmt"

// Op is one word of the list of steps.
type Op string

// The steps. Each is described where it is carried out.
const (
	Freeze  Op = "Freeze"
	Hold    Op = "Hold"
	Tighten Op = "Tighten"
	Shrink  Op = "Shrink"
	Vacate  Op = "Vacate"
	Release Op = "Release"
	Reserve Op = "Reserve"
	Claim   Op = "Claim"
	Grow    Op = "Grow"
	Relax   Op = "Relax"
	Retire  Op = "Retire"
	Settle  Op = "Settle"
	Thaw    Op = "Thaw"
)

// perOrdinal is the move of one ordinal from one side to the other, in the only
// order that is safe. The same list, with the sides swapped, walks it back.
func perOrdinal() []Op {
	return []Op{
		Tighten, // both budgets leave room for the ordinal that is about to be down
		Shrink,  // the side that has it lets go of it
		Vacate,  // its pod and its volumes are proven free
		Release, // its claims are deleted; the volumes are held by Retain
		Reserve, // the volumes are promised to the claims of the other side
		Claim,   // those claims are made and bound
		Grow,    // the other side takes it
		Relax,   // both budgets for the new split
	}
}

// Whole is the ordinal of a step that concerns the whole plan.
const Whole int32 = -1

// Step is one word of the list and what it is for. Seq grows by one from step to
// step over the whole life of a plan, also when it is walked back, and is
// stamped on every object that the step writes.
type Step struct {
	Seq     int   `json:"seq"`
	Op      Op    `json:"op"`
	Ordinal int32 `json:"ordinal"`
	// From is the side that has the ordinal before the move. For Retire, Settle
	// and Thaw it is the side that ends up without the ordinals.
	From Side `json:"from"`
}

// To is the side that has the ordinal after the move.
func (s Step) To() Side { return s.From.Other() }

// ID gives "4/Reserve", or "Freeze" for a step of the whole plan.
func (s Step) ID() string {
	if s.Ordinal == Whole {
		return string(s.Op)
	}
	return fmt.Sprintf("%d/%s", s.Ordinal, s.Op)
}

// Course is a direction in which a plan is walked.
type Course string

const (
	// Move takes the ordinals from source to destination, highest first.
	Move Course = "Move"
	// Return walks back what Move did, the last ordinal first, and restores the
	// source field for field.
	Return Course = "Return"
	// Clean removes the source and our marks after a finished Move.
	Clean Course = "Clean"
)

// Leg is one walk over a plan: a course, and the Seq of its first step.
type Leg struct {
	Course Course `json:"course"`
	First  int    `json:"first"`
	// Lowest is the ordinal a Return begins with. At End nothing has to be walked
	// back. Other courses do not use it.
	Lowest int32 `json:"lowest"`
}

// Step returns the step with the given Seq, or false behind the last one.
func (p *Plan) Step(l Leg, seq int) (Step, bool) {
	i := seq - l.First
	if i < 0 {
		return Step{}, false
	}
	var op Op
	ordinal, from := Whole, Source
	switch l.Course {
	case Move:
		op, ordinal = p.moveStep(i)
	case Return:
		from = Destination
		op, ordinal = p.returnStep(i, l.Lowest)
	case Clean:
		op, ordinal = p.closing(i)
	}
	return Step{Seq: seq, Op: op, Ordinal: ordinal, From: from}, op != ""
}

// moveStep: Freeze, Hold for each ordinal, then the ordinals, highest first.
func (p *Plan) moveStep(i int) (Op, int32) {
	if i == 0 {
		return Freeze, Whole
	}
	i--
	if i < int(p.Count) {
		return Hold, p.Start + int32(i)
	}
	i -= int(p.Count)
	ops := perOrdinal()
	if i >= int(p.Count)*len(ops) {
		return "", Whole
	}
	return ops[i%len(ops)], p.End() - 1 - int32(i/len(ops))
}

// returnStep: the ordinals from lowest upwards, then the closing steps.
func (p *Plan) returnStep(i int, lowest int32) (Op, int32) {
	ops := perOrdinal()
	walk := int(p.End()-lowest) * len(ops)
	if i < walk {
		return ops[i%len(ops)], lowest + int32(i/len(ops))
	}
	return p.closing(i - walk)
}

// closing ends a plan in either direction: the emptied set goes, each volume is
// given back its own policy, and the marks and budgets go last.
func (p *Plan) closing(i int) (Op, int32) {
	switch {
	case i == 0:
		return Retire, Whole
	case i <= int(p.Count):
		return Settle, p.Start + int32(i) - 1
	case i == int(p.Count)+1:
		return Thaw, Whole
	default:
		return "", Whole
	}
}

// Boundary says whether no ordinal is in flight just before this step: the
// places where a pause takes effect.
func (s Step) Boundary() bool {
	switch s.Op {
	case Shrink, Vacate, Release, Reserve, Claim, Grow, Relax:
		return false
	case Freeze, Hold, Tighten, Retire, Settle, Thaw:
		return true
	}
	return false
}

// Batch is how many steps of the same word one journal entry may announce. Hold
// and Settle keep their old values on the very object they write, in the same
// write, so the journal need only say that they may have begun.
func (o Op) Batch() int {
	if o == Hold || o == Settle {
		return 64
	}
	return 1
}
