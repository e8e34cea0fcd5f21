// Package hints says what stays after a run of a plan, and with which command the user continues or cleans up.
package hints

import (
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// LeftBehind returns which claims a side keeps because their volumes did not move, or "". Their data is a copy, and
// only the user knows whether it is still needed. The command names the cluster that this process has verified, because
// on the other side the claims of these names are in use. Of a side that is lost there is nothing to delete from here.
func LeftBehind(t *reach.Target, side plans.Side) string {
	var names []string
	for _, c := range t.Plan.Claims {
		for o := range t.Plan.Ordinals().All() {
			if !c.Mode.Moved() {
				names = append(names, t.Plan.ClaimName(side, c.Template, o))
			}
		}
	}
	end := t.Ends[side]
	if len(names) == 0 || end == nil {
		return ""
	}
	ref := t.Plan.On(side)
	return fmt.Sprintf("Left on %s, with the data that the application had there. To delete them when they are no longer needed: %s delete pvc %s\n", ref, end.Kubectl(ref.Namespace), strings.Join(names, " "))
}

// Before returns in which state an abort has left the source, as the end of a sentence.
func Before(j *journal.Journal) string {
	if left := j.Unbound(); left != "" {
		return " again, but not all is as it was before: " + left
	}
	return " as it was before"
}

// Unbound returns what the user has to do with volumes of the set that no claim was bound to at the end, or "".
func Unbound(j *journal.Journal) string {
	if left := j.Unbound(); left != "" {
		return "Look at what is left: " + left + ".\n"
	}
	return ""
}

// Bridged returns which command has to run while no process carries out a plan whose names are bridged, or
// "".
func Bridged(t *reach.Target) string {
	if len(t.Plan.Directories()) == 0 {
		return ""
	}
	return fmt.Sprintf("Until then a pod that restarts is found at its new address only while this runs: %s\n", t.Command("names -w"))
}

// Record returns which record of an ended plan stays, and how to delete it. It returns "" if the names are
// kept, because they still need the record.
func Record(t *reach.Target, j *journal.Journal) string {
	if j.KeepNames {
		return ""
	}
	if j.Detached {
		return fmt.Sprintf("When it has ended, its record stays; to delete that: %s\n", t.Command("forget"))
	}
	return fmt.Sprintf("Two ConfigMaps stay as the record of what was done; to delete them: %s\n", t.Command("forget"))
}

// Granted returns how to revoke, after its end, what the orchestrator was granted for a plan. If the source's
// cluster is gone, that is on the destination alone.
func Granted(t *reach.Target, direction plans.Direction, sourceGone bool) string {
	revoke := "revoke"
	if sourceGone {
		revoke = "revoke --side destination"
	}
	return fmt.Sprintf("When %s says %s, revoke what the orchestrator was granted for it: %s\n", t.Command("status"), direction.Outcome(), t.Command(revoke))
}
