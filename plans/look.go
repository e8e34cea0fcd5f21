package plans

import "context"

// Standing is where a step stands in the world.
type Standing int

const (
	// Before means: the step's write has not happened and may happen now.
	Before Standing = iota
	// During means: on its way; nothing to do but wait.
	During
	// After means: finished.
	After
	// Foreign means: the world is neither as it was planned nor as we made it.
	Foreign
)

// String gives the word.
func (s Standing) String() string {
	return [...]string{"Before", "During", "After", "Foreign"}[s]
}

// Moment is what a look is told: the step, whether its intent is durable, the
// stamp its writes carry, and what the journal remembers.
type Moment struct {
	Step
	Began  bool
	Turned bool
	Stamp  Stamp
	Flight *Flight
	Saved  Saved
	// KeepNames is that of the Journal.
	KeepNames bool
}

// InFlight says whether the journal knows the pod and volumes of this ordinal.
func (m Moment) InFlight() bool { return m.Flight != nil && m.Flight.Ordinal == m.Ordinal }

// Undo holds the old values that a write would destroy. They are journaled
// BEFORE the write is sent (S10).
type Undo struct {
	Flight *Flight
	Saved  Saved
}

// Sight is what a look saw.
type Sight struct {
	Standing Standing
	// Reason is one sentence for a person: with During what is waited for, with
	// Foreign what is wrong and what to do, with Before what the write does.
	Reason string
	Undo   Undo
	// Write is one conditional write, prepared against exactly the objects that
	// were seen. Valid with Before; its outcome is what the next look sees.
	Write func(context.Context) error
}

// Look reads the world for one step. It never writes; an error means that it
// could not see.
type Look func(context.Context, Moment) (Sight, error)

// Done is the sight of a finished step.
func Done() Sight { return Sight{Standing: After} }

// Wait is the sight of a step on its way.
func Wait(reason string) Sight { return Sight{Standing: During, Reason: reason} }

// Stop is the sight of a world that somebody else has changed.
func Stop(reason string) Sight { return Sight{Standing: Foreign, Reason: reason} }

// Write is the sight of a step whose next write is due.
func Write(what string, undo Undo, write func(context.Context) error) Sight {
	return Sight{Standing: Before, Reason: what, Undo: undo, Write: write}
}
