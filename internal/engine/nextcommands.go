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

// typed returns the command of a verb as the user types it.
func typed(command func(verb string) string, verb, why string) NextCommand {
	return NextCommand{strings.Trim(command(verb), "`"), why}
}

// nextOf returns what comes next, as next does. A blocked plan that continues by itself need not be told to.
func (v *View) nextOf(p *plans.Plan, j *journal.Journal, work bool, command func(verb string) string) (string, []NextCommand) {
	if awaitsCluster(j, work, v.Holder) {
		return "the orchestrator continues it as soon as a Secret in its namespace names that cluster; " + command("abort") + " ends the plan or rolls back", []NextCommand{typed(command, "abort", "ends the plan or rolls back")}
	}
	if !work || !j.LooksOn() {
		return v.next(p, j, work, command)
	}
	words, commands := v.next(p, j, false, command)
	return "it continues by itself when what it waits for has ended; otherwise: " + words, commands
}

// awaitsCluster reports whether a plan waits for a user to make one of its clusters known to the orchestrator.
func awaitsCluster(j *journal.Journal, work bool, holder string) bool {
	return j.Detached && work && holder == "" && journal.ClusterUnknown(j)
}

// next returns what comes next in words, or states which process continues without a command, and the commands. work
// reports that there is something to do.
func (v *View) next(p *plans.Plan, j *journal.Journal, work bool, command func(verb string) string) (string, []NextCommand) {
	carried := v.Holder != "" && (work || !j.Detached && j.Outcome == "")
	back := typed(command, "abort", "rolls back")
	switch {
	case j.Ended(), carried:
		return j.Unbound(), nil
	case work && j.Detached:
		return "the orchestrator continues it", nil
	case j.Outcome == plans.Split:
		return command("resume") + " moves the remaining ordinals; " + command("abort") + " rolls back", []NextCommand{typed(command, "resume", "moves the remaining ordinals"), back}
	case j.Outcome == plans.Moved:
		return command("finalize") + " cleans up the source; until then " + command("abort") + " rolls back", []NextCommand{typed(command, "finalize", "cleans up the source"), back}
	case j.Leg.Direction == plans.Abort:
		return nextOfAbort(j.Parted(p) == "", command)
	case j.Leg.Direction == plans.Finalize:
		return nextOfFinalize(j.Parted(p) == "", command)
	case j.Untouched() && !j.Paused && j.Blocked == "":
		return command("apply") + " or " + command("abort"), []NextCommand{typed(command, "apply", "carries the plan out"), back}
	}
	return command("resume") + " or " + command("abort"), []NextCommand{typed(command, "resume", "continues"), back}
}

// nextOfAbort returns what comes next on the way back, as next does. turns reports that the plan can still turn to the
// destination again.
func nextOfAbort(turns bool, command func(verb string) string) (string, []NextCommand) {
	resume := typed(command, "resume", "continues to roll back")
	if !turns {
		return command("resume"), []NextCommand{resume}
	}
	return command("resume") + " continues to roll back; " + command("apply") + " turns the plan to the destination again",
		[]NextCommand{resume, typed(command, "apply", "turns the plan to the destination again")}
}

// nextOfFinalize returns what comes next while the source is cleaned up, as next does. turns reports that the plan can
// still be rolled back.
func nextOfFinalize(turns bool, command func(verb string) string) (string, []NextCommand) {
	resume := typed(command, "resume", "continues to clean up the source")
	if !turns {
		return command("resume"), []NextCommand{resume}
	}
	return command("resume") + " continues to clean up the source; nothing is deleted yet, and " + command("abort") + " still rolls back",
		[]NextCommand{resume, typed(command, "abort", "rolls back")}
}
