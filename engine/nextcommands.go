package engine

import (
	"strings"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// NextCommand is a command that the user may type next.
type NextCommand struct {
	Command string `json:"command"` // Command is the whole command line.
	Why     string `json:"why"`     // Why is what the command does, or why it is due.
}

// next returns what comes next in words, or states which process continues without a command, and the commands. work
// reports that there is something to do.
func (v *View) next(p *plans.Plan, j *journal.Journal, work bool, command func(verb string) string) (string, []NextCommand) {
	carried := v.Holder != "" && (work || !j.Detached && j.Outcome == "")
	typed := func(verb, why string) NextCommand { return NextCommand{strings.Trim(command(verb), "`"), why} }
	back := typed("abort", "rolls back")
	switch {
	case j.Ended(), carried:
		return j.Unbound(), nil
	case work && j.Detached:
		return "the orchestrator continues it", nil
	case j.Outcome == plans.Split:
		return command("resume") + " moves the remaining ordinals; " + command("abort") + " rolls back", []NextCommand{typed("resume", "moves the remaining ordinals"), back}
	case j.Outcome == plans.Moved:
		return command("finalize") + " cleans up the source; until then " + command("abort") + " rolls back", []NextCommand{typed("finalize", "cleans up the source"), back}
	case j.Leg.Direction == plans.Abort && j.Parted(p) == "":
		return command("resume") + " continues to roll back; " + command("apply") + " turns the plan to the destination again",
			[]NextCommand{typed("resume", "continues to roll back"), typed("apply", "turns the plan to the destination again")}
	case j.Leg.Direction == plans.Finalize && j.Parted(p) == "":
		return command("resume") + " continues to clean up the source; nothing is deleted yet, and " + command("abort") + " still rolls back",
			[]NextCommand{typed("resume", "continues to clean up the source"), back}
	case j.Leg.Direction == plans.Abort:
		return command("resume"), []NextCommand{typed("resume", "continues to roll back")}
	case j.Leg.Direction == plans.Finalize:
		return command("resume"), []NextCommand{typed("resume", "continues to clean up the source")}
	case j.Untouched() && !j.Paused && j.Blocked == "":
		return command("apply") + " or " + command("abort"), []NextCommand{typed("apply", "carries the plan out"), back}
	}
	return command("resume") + " or " + command("abort"), []NextCommand{typed("resume", "continues"), back}
}
