package plans

import (
	"context"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// Standing is the progress of a step as seen in the clusters.
type Standing int

const (
	// Before means that the step's write has not happened and may happen now.
	Before Standing = iota
	// During means that the step is on its way and only has to be waited for.
	During
	// After means that the step is finished.
	After
	// Conflict means that the clusters are neither as planned nor as this plan left them.
	Conflict
)

// String returns the name of the standing.
func (s Standing) String() string {
	return [...]string{"Before", "During", "After", "Conflict"}[s]
}

// StepContext is the input of a look: the step, whether its intent is durable, the stamp that its
// writes carry, and the facts from the journal.
type StepContext struct {
	Step
	Began bool
	// Reversed reports that the wave may be anywhere, since the plan was turned while it was under way, and that it was
	// last on the side that receives it, or never left it.
	Reversed bool
	// Resumed reports that the wave may be anywhere, since the plan was turned more than once, and that it was last on the
	// side that it leaves: it has left, or is about to, or is there again.
	Resumed bool
	Stamp   Stamp
	Flight  *Flight
	Saved   Saved
	// KeepNames is as in the Journal.
	KeepNames bool
	// Passed is as in the Journal, if it is about this step.
	Passed *Passed
	// Skips is what the user wants skipped at this step.
	Skips Skips
	// Allowed is how many ordinals may be unavailable: d, or the number that the user allows for an abort.
	Allowed int32
	// Down is how many ordinals outside the wave are already down, as far as the step has counted
	// them. The budgets leave that much less.
	Down int32
	// Readopt is as in Assurance.
	Readopt bool
	// NodesGone and NodesGoneThere are the nodes of which the user has vouched before the wave has left, as in a Flight.
	NodesGone, NodesGoneThere []string
	// Template is as OtherTemplate in Assurance.
	Template string
	// Copies are as OtherCopies in Assurance.
	Copies []string
	// Unfit is what bars the wave while one of its ordinals serves, or nil: the side that receives it might not be able to
	// bring it up (S18).
	Unfit *Unfit
	// Follows reports that the wave before has just arrived, and its budgets are still tight.
	Follows bool
}

// Skips is what the user wants skipped at a step: its gates, or the proof that the places of its wave are there.
type Skips struct{ Gates, Places bool }

// Unfit is what the checks of the side that receives a wave have found, or the error for which they have not been made.
type Unfit struct {
	Why string
	Err error
}

// InFlight reports whether the journal has the pods and volumes of this wave.
func (m StepContext) InFlight() bool { return m.Flight != nil && m.Flight.Ordinals == m.Ordinals }

// Unsure reports whether the wave of the step may be on either side, or on neither, when the step begins.
func (m StepContext) Unsure() bool { return m.Reversed || m.Resumed }

// Undo holds the old values that a write would destroy. They are journaled
// BEFORE the write is sent (S10).
type Undo struct {
	Flight *Flight
	Saved  Saved
	Passed *Passed
	// Asks, with the wait of a wave that has not left, is the side in whose cluster its volumes are still attached. It is
	// journaled before the wait: of that cluster is the node that the user may vouch for.
	Asks Side
}

// Observation is the result of a look.
type Observation struct {
	Standing Standing
	// ID names the reason of a During or a Conflict.
	ID reasons.ID
	// Reason is one sentence for the user: with During the thing that the step waits for, with
	// Conflict the problem and the remedy, with Before the effect of the write.
	Reason string
	// Undo is journaled: with Before, before the write; with After, together with the next intent;
	// with During, before the wait.
	Undo Undo
	// Write sends the writes that are due, one or one for each volume of a wave. Each is conditional
	// and prepared against exactly the object that was seen. It is valid with Before; the next look
	// sees the outcome. It may also query an application, which counts as a write: the query may
	// change something there, and its result is available to the next look.
	Write func(context.Context) error
	// Again, with During, is the time after which to look again even if no change is seen; 0 for none.
	Again time.Duration
	// Span is the part of an ordinal's time on neither side to which the wait belongs, where the step
	// does not determine it. The times of the ordinal in the journal are split by it.
	Span Span
	// Idle, with During, reports that the wait is for a node, a disk or the application, and not for
	// the controllers of a cluster. An orchestrator then lets a wave of another plan
	// start (`internal/engine/wavelimit`).
	Idle bool
	// Eases, with During of a wave that has not left, reports that the wait ends only, or sooner, when the budgets are open
	// and the sets are not pinned.
	Eases bool
	// Nodes, with After of a Grow, has the node of each pod by its ordinal. It is only reported.
	Nodes map[int32]string
	// Placed, with After of a preparation, has the places that were taken for the wave. It is only reported.
	Placed []Placed
	// Unreached, with During of a preparation, is how many of those are not reached from the places of the wave that must be. It
	// is only reported.
	Unreached int
	// Available, with After of a Grow, is when the last pod of the wave became available, by the clock of its node and
	// to the second; zero if that is not known. It is only reported.
	Available time.Time
}

// In returns the observation with the given span.
func (s Observation) In(span Span) Observation {
	s.Span = span
	return s
}

// Idly returns the observation marked as not waiting for controllers.
func (s Observation) Idly() Observation {
	s.Idle = true
	return s
}

// Look reads the clusters for one step. It never writes; an error means that it could not see them.
type Look func(context.Context, StepContext) (Observation, error)

// Done returns the observation of a finished step.
func Done() Observation { return Observation{Standing: After} }

// Wait returns the observation of a step on its way.
func Wait(id reasons.ID, reason string) Observation {
	return Observation{Standing: During, ID: id, Reason: reason}
}

// Stop returns the observation of clusters that another writer has changed.
func Stop(id reasons.ID, reason string) Observation {
	return Observation{Standing: Conflict, ID: id, Reason: reason}
}

// Together returns the observation of a step whose parts are independent of one another: the first
// Conflict part, else Before with every write that is due, else the first wait, else Done.
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

// inOneGo sends the writes one after the other, up to the first that fails, so that the cluster works
// on all of them at the same time. None of them may need an Undo of its own.
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

// Write returns the observation of a step whose next write is due.
func Write(what string, undo Undo, write func(context.Context) error) Observation {
	return Observation{Standing: Before, Reason: what, Undo: undo, Write: write}
}
