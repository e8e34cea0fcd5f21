package plans

import "slices"

// Op is the operation of a step.
type Op string

// The operations. Each is described by its row in operations, and where it is carried out.
const (
	Freeze  Op = "Freeze"
	Protect Op = "Protect"
	Share   Op = "Share"
	Tighten Op = "Tighten"
	Quiesce Op = "Quiesce"
	Shrink  Op = "Shrink"
	Vacate  Op = "Vacate"
	Release Op = "Release"
	Reserve Op = "Reserve"
	Claim   Op = "Claim"
	Grow    Op = "Grow"
	Verify  Op = "Verify"
	Relax   Op = "Relax"
	Retire  Op = "Retire"
	Settle  Op = "Settle"
	Unshare Op = "Unshare"
	Thaw    Op = "Thaw"
)

// Part is one kind of thing that a move takes along. The part of an operation has its look.
type Part string

// The parts that have operations.
const (
	Budgets Part = "budgets"
	Gating  Part = "gates"
	Sets    Part = "sets"
	Volumes Part = "volumes"
)

// Phase is where in the life of a plan an operation comes. It also says in which legs: a Move opens and moves, an Abort
// moves and closes, and a Finalize closes.
type Phase string

// The phases.
const (
	Opens  Phase = "opens"
	Moves  Phase = "moves"
	Closes Phase = "closes"
)

// Scope is what one step of the operation is about.
type Scope string

// The scopes.
const (
	OfPlan    Scope = "plan"
	OfOrdinal Scope = "ordinal"
	OfWave    Scope = "wave"
)

// Position is where the ordinals of a wave are when a step of the operation has begun. The order is that of the way.
type Position int

// The positions.
const (
	NoWave      Position = iota + 1 // the operation belongs to no wave
	WaveStays                       // all are in the range of the side that they leave
	WaveLeaves                      // that range gives them up
	WaveStops                       // their pods end, and their volumes come free
	WaveAway                        // they are on neither side, and their claims are handed over
	WaveEnters                      // the range of the other side takes them
	WaveArrived                     // all are in the range of the other side
)

// Effect is what an operation does to the budgets of both sides.
type Effect string

// What operations do to budgets.
const (
	BudgetsStay    Effect = "stay"
	BudgetsTighten Effect = "tighten"
	BudgetsLoosen  Effect = "loosen"
)

// Role is the side of a wave that an operation concerns. An operation of the whole plan concerns the side that releases.
type Role string

// The roles.
const (
	Releases Role = "releases"
	Receives Role = "receives"
)

// Pause is whether a pause takes effect before an operation: only where no ordinal is in flight just before it.
type Pause string

// Whether a pause takes effect.
const (
	Pausable Pause = "pausable"
	InFlight Pause = "in flight"
)

// Guard is whether the look of an operation runs only while the ordinals of the wave are outside the ranges (S6).
type Guard string

// The guards.
const (
	Guarded   Guard = "guarded"
	Unguarded Guard = "unguarded"
)

// Intent is how many steps an intent announces.
type Intent string

// The intents.
const (
	// OneStep is announced alone.
	OneStep Intent = "one step"
	// ManySteps are announced with one entry of the journal. They keep their old values on the very object that they write,
	// in the same write, so the journal need only record that they may have begun.
	ManySteps Intent = "many steps"
	// WithNext announces the step after it too: every old value that that one destroys is saved by then.
	WithNext Intent = "with the next step"
)

// Without a span, and without a gate.
const (
	noSpan = ""
	noGate = ""
)

// operation is all that the program knows of an operation. Every question about a step is a column, so that a new one answers
// all of them: a row that lacks a column does not compile.
type operation struct {
	op       Op
	part     Part
	phase    Phase
	scope    Scope
	position Position
	budget   Effect
	role     Role
	pause    Pause
	guard    Guard
	intent   Intent
	span     Span // the part of an ordinal's time on neither side that begins with it, unless its look says another
	gate     When // when the gates that it evaluates are due
	text     string
}

// operations is the table of the operations, in the order in which a plan takes them, which is the only one that is safe.
var operations = []operation{ //nolint:gochecknoglobals // a table that every step asks
	{Freeze, Sets, Opens, OfPlan, NoWave, BudgetsStay, Releases, Pausable, Unguarded, OneStep, noSpan, noGate, "both sets belong to the plan, and the destination has what its pods need"},
	{Protect, Volumes, Opens, OfOrdinal, NoWave, BudgetsStay, Releases, Pausable, Unguarded, ManySteps, noSpan, noGate, "the volumes of an ordinal become Retain"},
	{Share, Volumes, Opens, OfPlan, NoWave, BudgetsStay, Releases, Pausable, Unguarded, OneStep, noSpan, noGate, "both sides have claims on the volumes that all ordinals mount"},

	{Tighten, Budgets, Moves, OfWave, WaveStays, BudgetsTighten, Releases, Pausable, Unguarded, OneStep, noSpan, noGate, "both budgets leave room for the ordinals that will be down"},
	{Quiesce, Gating, Moves, OfWave, WaveStays, BudgetsStay, Releases, InFlight, Unguarded, OneStep, noSpan, BeforeShrink, "the application confirms that they may leave"},
	{Shrink, Sets, Moves, OfWave, WaveLeaves, BudgetsStay, Releases, InFlight, Unguarded, OneStep, Terminating, noGate, "the side that has them scales down"},
	{Vacate, Volumes, Moves, OfWave, WaveStops, BudgetsStay, Releases, InFlight, Guarded, OneStep, noSpan, noGate, "their pods and their volumes are proven free"},
	{Release, Volumes, Moves, OfWave, WaveAway, BudgetsStay, Releases, InFlight, Guarded, OneStep, HandingOver, noGate, "their claims are deleted; Retain protects the volumes"},
	{Reserve, Volumes, Moves, OfWave, WaveAway, BudgetsStay, Receives, InFlight, Guarded, WithNext, HandingOver, noGate, "the volumes are reserved for the claims of the other side"},
	{Claim, Volumes, Moves, OfWave, WaveAway, BudgetsStay, Receives, InFlight, Guarded, OneStep, HandingOver, noGate, "those claims are created and bound"},
	{Grow, Sets, Moves, OfWave, WaveEnters, BudgetsStay, Receives, InFlight, Unguarded, WithNext, Attaching, noGate, "the other side scales up"},
	{Verify, Gating, Moves, OfWave, WaveArrived, BudgetsStay, Receives, InFlight, Unguarded, OneStep, noSpan, AfterGrow, "the application confirms that they have arrived"},
	{Relax, Budgets, Moves, OfWave, WaveArrived, BudgetsLoosen, Receives, InFlight, Unguarded, OneStep, noSpan, noGate, "both budgets fit the new split"},

	{Retire, Sets, Closes, OfPlan, NoWave, BudgetsStay, Releases, Pausable, Unguarded, OneStep, noSpan, noGate, "the emptied set is deleted"},
	{Settle, Volumes, Closes, OfOrdinal, NoWave, BudgetsStay, Releases, Pausable, Unguarded, ManySteps, noSpan, noGate, "the volumes of an ordinal get back their own policy"},
	{Unshare, Volumes, Closes, OfPlan, NoWave, BudgetsStay, Releases, Pausable, Unguarded, OneStep, noSpan, noGate, "so do the volumes that all ordinals mount"},
	{Thaw, Sets, Closes, OfPlan, NoWave, BudgetsStay, Releases, Pausable, Unguarded, OneStep, noSpan, noGate, "names, budgets and marks become what they were"},
}

// MaxAnnounced bounds how far Begun may be ahead of Done: the number of steps that Begin announces at once.
const MaxAnnounced = 64

// row returns the row of an operation. There is no operation after the last step: its columns are empty, and the answer
// to each question about it is no.
func (o Op) row() operation {
	for _, r := range operations {
		if r.op == o {
			return r
		}
	}
	return operation{}
}

// in returns the operations of a phase, in their order.
func (p Phase) in() []Op {
	var out []Op
	for _, r := range operations {
		if r.phase == p {
			out = append(out, r.op)
		}
	}
	return out
}

// Ops returns all operations, in the order in which a plan takes them.
func Ops() []Op { return slices.Concat(Opens.in(), Moves.in(), Closes.in()) }

// Part returns the part whose look the operation has.
func (o Op) Part() Part { return o.row().part }

// Text says what the operation does.
func (o Op) Text() string { return o.row().text }

// Closes reports whether the operation comes after the last wave, when every ordinal is where it stays.
func (o Op) Closes() bool { return o.row().phase == Closes }

// Scope returns what one step of the operation is about.
func (o Op) Scope() Scope { return o.row().scope }

// Position returns where the ordinals of the wave are when the operation has begun.
func (o Op) Position() Position { return o.row().position }

// Tightens reports whether the operation tightens the budgets: a wave begins with it.
func (o Op) Tightens() bool { return o.row().budget == BudgetsTighten }

// Loosens reports whether the operation loosens the budgets: a wave ends with it.
func (o Op) Loosens() bool { return o.row().budget == BudgetsLoosen }

// Stays reports whether the operation comes before the one by which a wave leaves.
func (o Op) Stays() bool { return o.row().position == WaveStays }

// Leaves reports whether a wave leaves by the operation.
func (o Op) Leaves() bool { return o.row().position == WaveLeaves }

// Stops reports whether pods of the wave may still be ending.
func (o Op) Stops() bool { return o.Leaves() || o.Frees() }

// Frees reports whether the operation waits until the pods and volumes of the wave are free.
func (o Op) Frees() bool { return o.row().position == WaveStops }

// GivesUp reports whether the operation hands over the claims of the side that releases the wave.
func (o Op) GivesUp() bool { return o.row().position == WaveAway && !o.Receives() }

// TakesOver reports whether the operation hands over the claims of the side that receives the wave.
func (o Op) TakesOver() bool { return o.row().position == WaveAway && o.Receives() }

// Enters reports whether a wave arrives by the operation.
func (o Op) Enters() bool { return o.row().position == WaveEnters }

// Arrived reports whether the operation comes after the one by which a wave arrives.
func (o Op) Arrived() bool { return o.row().position == WaveArrived }

// Receives reports whether the operation concerns the side that receives the ordinals of a wave, and not the side that
// releases them.
func (o Op) Receives() bool { return o.row().role == Receives }

// Boundary reports that no ordinal is in flight just before the operation. A pause takes effect only there.
func (o Op) Boundary() bool { return o.row().pause == Pausable }

// Guarded reports whether the look of the operation runs only while the ordinals are outside the ranges (S6).
func (o Op) Guarded() bool { return o.row().guard == Guarded }

// WithNext reports whether the intent of the operation announces the step after it too.
func (o Op) WithNext() bool { return o.row().intent == WithNext }

// Batch returns how many steps of the same operation one journal entry may announce.
func (o Op) Batch() int {
	if o.row().intent == ManySteps {
		return MaxAnnounced
	}
	return 1
}

// Span returns the part of an ordinal's time on neither side that begins with the operation, or "".
func (o Op) Span() Span { return o.row().span }

// Gate returns when the gates are due that the operation evaluates, or "".
func (o Op) Gate() When { return o.row().gate }

// Gated reports whether the operation evaluates gates: it waits until they pass.
func (o Op) Gated() bool { return o.Gate() != noGate }
