package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// States returns the words of the states that a plan can be waited for.
func States() (out []string) {
	for _, s := range plans.AwaitedStates() {
		out = append(out, string(s))
	}
	return out
}

// KnownStates returns these states as they are spelled here, whatever their case, or an error if one of them is no state.
func KnownStates(want []string) ([]plans.State, error) {
	var out []plans.State
	for _, w := range want {
		k := slices.IndexFunc(States(), func(s string) bool { return strings.EqualFold(s, w) })
		if k < 0 {
			return nil, fmt.Errorf("--for %s: expected one of %s%s", w, strings.Join(States(), ", "), program.DidYouMean(w, States()))
		}
		out = append(out, plans.State(States()[k]))
	}
	return out, nil
}

func joined(states []plans.State, with string) string {
	var words []string
	for _, s := range states {
		words = append(words, string(s))
	}
	return strings.Join(words, with)
}

// Verdict is what a wait finds.
type Verdict int

const (
	// NotYet means that the plan may still get there.
	NotYet Verdict = iota
	// Reached means that the plan is there. A plan that was finalized had moved.
	Reached
	// NeedsUser means that the plan is blocked, paused or split, and does not continue by itself.
	NeedsUser
	// Abandoned means that no process carries the plan on.
	Abandoned
	// TurnedBack means that the plan was aborted.
	TurnedBack
	// Over means that the plan has ended in another way.
	Over
)

// Judge compares a plan with the states that are waited for.
func Judge(want []plans.State, v *engine.View) Verdict {
	rests := slices.Contains([]plans.State{plans.StateBlocked, plans.StatePaused, plans.StateSplit}, v.State)
	switch {
	case v.Unknown() && !slices.Contains(want, v.State):
		return NeedsUser
	case v.LooksOn() && slices.Contains(want, v.State):
		return Reached
	case rests && !v.Rests():
		return NotYet // a request will change it, or it continues by itself
	case slices.Contains(want, v.State), v.State == plans.StateFinalized && slices.Contains(want, plans.StateMoved):
		return Reached
	case rests:
		return NeedsUser
	case v.State == plans.StateStopped, v.State == plans.StateStoppedInFlight:
		return Abandoned
	case v.State == plans.StateAborted:
		return TurnedBack
	case v.State == plans.StateFinalized:
		return Over
	}
	return NotYet
}

// Unreached says why a wait has ended before the plan was in one of the states.
func Unreached(t *reach.Target, s Status, verdict Verdict, want []plans.State, timeout time.Duration) string {
	plan, v, wanted := "plan "+t.Plan.Name, s.View, joined(want, " or ")
	switch verdict {
	case NeedsUser, Abandoned:
		return plan + stands(t.Plan, s) + "\nNext: " + v.Next
	case TurnedBack:
		return plan + " was aborted"
	case Over:
		return fmt.Sprintf("%s is %s, and will not be %s any more", plan, v.State, wanted)
	case Reached, NotYet:
	}
	what := ""
	switch {
	case v.Active():
		what = " " + v.Holder + " continues it, whether it is waited for or not."
	case v.Next != "":
		what = " No process carries it out now. Next: " + v.Next + "."
	}
	return fmt.Sprintf("%s is %s, and not %s within %s.%s To see it: %s", plan, v.State, wanted, timeout, what, t.Command("status"))
}

// stands says how a plan stands that does not continue by itself.
func stands(p *plans.Plan, s Status) string {
	if s.View.Unknown() {
		return " waits for a cluster that the orchestrator does not know: " + reasons.Tagged(s.View.ReasonID, s.View.Reason)
	}
	switch s.View.State {
	case plans.StateStopped:
		return " was stopped with no ordinal in flight, and no process carries it on"
	case plans.StateStoppedInFlight:
		return " was stopped in flight, and no process carries it on: " + downOf(s.View)
	case plans.StateBlocked:
		return " is blocked: " + reasons.Tagged(s.View.ReasonID, s.View.Reason)
	case plans.StatePaused:
		if step, _, more := s.Journal.Next(p); more && step.Moves() {
			return " is paused before " + p.Pods(step.Ordinals) + ", and does not continue by itself"
		}
		return " is paused, and does not continue by itself"
	default:
	}
	return fmt.Sprintf(" is split as asked, and does not continue by itself: %s has the ordinals from %d upwards", p.Destination, s.Journal.Leg.Lowest)
}
