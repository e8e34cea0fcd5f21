package plans

import (
	"context"
	"strings"
	"time"
)

// Standing is where a step stands in the world.
type Standing int

const (
	// Before means: the step's write has not happened and may happen now.
	Before Standing = iota
	// During means: on its way; nothing to do but wait.
	During
	// After means: finished.
	After
	// Conflict means: the world is neither as it was planned nor as we made it.
	Conflict
)

// String gives the word.
func (s Standing) String() string {
	return [...]string{"Before", "During", "After", "Foreign"}[s]
}

// StepContext is what a look is told: the step, whether its intent is durable, the
// stamp its writes carry, and what the journal remembers.
type StepContext struct {
	Step
	Began    bool
	Reversed bool
	Stamp    Stamp
	Flight   *Flight
	Saved    Saved
	// KeepNames is that of the Journal.
	KeepNames bool
	// Passed is that of the Journal, if it is about this step.
	Passed *Passed
	// SkipGates says that a person wants the gates of this step not to be asked.
	SkipGates bool
	// Allowed is how many ordinals may be unavailable: d, or what a person allows for the way back.
	Allowed int32
	// Down is how many ordinals beside the wave are down already, as far as the step has counted them:
	// the budgets leave so much less.
	Down int32
	// Readopt is that of Word.
	Readopt bool
}

// InFlight says whether the journal knows the pods and volumes of this wave.
func (m StepContext) InFlight() bool { return m.Flight != nil && m.Flight.Ordinals == m.Ordinals }

// Undo holds the old values that a write would destroy. They are journaled
// BEFORE the write is sent (S10).
type Undo struct {
	Flight *Flight
	Saved  Saved
	Passed *Passed
}

// Observation is what a look saw.
type Observation struct {
	Standing Standing
	// Reason is one sentence for a person: with During what is waited for, with
	// Foreign what is wrong and what to do, with Before what the write does.
	Reason string
	// Undo goes into the journal: with Before, before the write; with After, together
	// with the next intent; with During, before the wait.
	Undo Undo
	// Write sends the writes that are due, each conditional and prepared against
	// exactly the object that was seen: one, or one for each volume of a wave. Valid
	// with Before; the outcome is what the next look sees.
	// It may also ask an application something, which is as good as a write: it may
	// change something there, and what it answered the next look knows.
	Write func(context.Context) error
	// Again, with During, is when to look again even if nothing is seen to change; 0
	// for no such time.
	Again time.Duration
	// Span is which part of an ordinal's time on neither side the wait is, where the step
	// does not say it.
	Span Span
	// Idle, with During, says that the wait is for a node, a disk or the application, and not for
	// the controllers of a cluster.
	Idle bool
}

// In gives the observed as being within a span.
func (s Observation) In(span Span) Observation {
	s.Span = span
	return s
}

// Idly gives the observed as not being a wait for controllers.
func (s Observation) Idly() Observation {
	s.Idle = true
	return s
}

// Look reads the world for one step. It never writes; an error means that it
// could not see.
type Look func(context.Context, StepContext) (Observation, error)

// Done is the observed of a finished step.
func Done() Observation { return Observation{Standing: After} }

// Wait is the observed of a step on its way.
func Wait(reason string) Observation { return Observation{Standing: During, Reason: reason} }

// Stop is the observed of a world that somebody else has changed.
func Stop(reason string) Observation { return Observation{Standing: Conflict, Reason: reason} }

// Together is the observed of a step in parts that do not touch one another: foreign
// if one part is, else Before with every write that is due, else what is waited for.
func Together(parts []Observation) Observation {
	var due, waits []Observation
	for _, s := range parts {
		switch s.Standing {
		case Conflict:
			return s
		case Before:
			due = append(due, s)
		case During:
			waits = append(waits, s)
		case After:
		}
	}
	switch {
	case len(due) == 1:
		return due[0]
	case len(due) > 1:
		return inOneGo(due)
	case len(waits) > 0:
		return waits[0]
	}
	return Done()
}

// inOneGo sends the writes one after the other, up to the first that fails: what
// they wait for in the cluster then happens at the same time. None of them may need
// an Undo of its own.
func inOneGo(due []Observation) Observation {
	var reasons []string
	for _, s := range due {
		reasons = append(reasons, s.Reason)
	}
	return Write(strings.Join(reasons, "; "), Undo{}, func(ctx context.Context) error {
		for _, s := range due {
			if err := s.Write(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Write is the observed of a step whose next write is due.
func Write(what string, undo Undo, write func(context.Context) error) Observation {
	return Observation{Standing: Before, Reason: what, Undo: undo, Write: write}
}
