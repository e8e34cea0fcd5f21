package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// States returns the states that a plan can be waited for.
func States() []string {
	return []string{string(plans.Moved), string(plans.Split), string(plans.Finalized), string(plans.Aborted), "Paused", "Blocked", "Moving", "Aborting", "Finalizing"}
}

// KnownStates returns an error if one of these is no state.
func KnownStates(want []string) error {
	for _, w := range want {
		if !slices.Contains(States(), w) {
			return fmt.Errorf("--for %s: expected one of %s", w, strings.Join(States(), ", "))
		}
	}
	return nil
}

// Verdict is what a wait finds.
type Verdict int

const (
	// NotYet means that the plan may still get there.
	NotYet Verdict = iota
	// Reached means that the plan is there. A plan that was finalized had moved.
	Reached
	// NeedsUser means that the plan is blocked.
	NeedsUser
	// TurnedBack means that the plan was aborted.
	TurnedBack
	// Over means that the plan has ended in another way.
	Over
)

// Judge compares a plan with the states that are waited for.
func Judge(want []string, v *engine.View) Verdict {
	switch state := plans.Outcome(v.State); {
	case slices.Contains(want, v.State), state == plans.Finalized && slices.Contains(want, string(plans.Moved)):
		return Reached
	case v.State == "Blocked" && v.Rests():
		return NeedsUser
	case state == plans.Aborted:
		return TurnedBack
	case state == plans.Finalized:
		return Over
	}
	return NotYet
}
