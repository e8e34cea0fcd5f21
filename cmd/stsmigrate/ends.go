package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/reasons"
)

// conclude reports how a run ended and which command comes next.
func (a *app) conclude(t *reach.Target, direction plans.Direction, p engine.Progress, err error) error {
	verb := map[plans.Direction]string{plans.Move: "apply", plans.Abort: "abort", plans.Finalize: "finalize"}[direction]
	back := "; to abort: " + t.Command("abort")
	if direction != plans.Move {
		back = ""
	}
	switch {
	case errors.Is(err, engine.ErrStopped):
		return exitCode{code: exitInterrupted, message: fmt.Sprintf("stopped; everything written so far is recorded. To resume: %s%s", t.Command(verb), back)}
	case err != nil:
		return fmt.Errorf("%w; everything written so far is recorded, to resume: %s", err, t.Command(verb))
	case p.Overtaken:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("%s. To watch it: %s", reasons.Tagged(p.ID, p.Reason), t.Command("status -w"))}
	case p.Kind == engine.Blocked:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("blocked: %s\nNothing more is written. When the cause is fixed: %s%s%s", reasons.Tagged(p.ID, p.Reason), t.Command("resume"), back, a.explained(p.ID))}
	case p.Kind == engine.Paused:
		fmt.Fprintf(a.Out, "%s; no ordinal is in flight. To resume: %s%s\n%s", p.Reason, t.Command("resume"), back, bridged(t))
	case p.Outcome == plans.Split:
		fmt.Fprintf(a.Out, "split, as asked: %s keeps the ordinals below, %s has the others.\nTo move the rest: %s%s\n", t.Plan.Source, t.Plan.Destination, t.Command("resume"), back)
		fmt.Fprint(a.Out, bridged(t))
	case p.Outcome == plans.Moved:
		if p.Downtime != nil {
			fmt.Fprintf(a.Out, "each wave was %s\n", p.Downtime)
		}
		fmt.Fprintf(a.Out, "moved: %d ordinals of %s are on %s.\nTo clean the source up: %s%s\n", t.Plan.Count, t.Plan.Source, t.Plan.Destination, t.Command("finalize"), back)
		fmt.Fprint(a.Out, bridged(t))
	case p.Outcome == plans.Aborted:
		fmt.Fprintf(a.Out, "aborted: everything is on %s as it was before.\n", t.Plan.Source)
		a.leftBehind(t, plans.Destination)
		fmt.Fprint(a.Out, record(t, &journal.Journal{}))
	case p.Outcome == plans.Finalized:
		fmt.Fprintf(a.Out, "finalized: %s is on its own; the source set is gone. Other objects of the namespace %s (Services, ConfigMaps, your own budgets) are left unchanged.\n", t.Plan.Destination, t.Plan.Source.Namespace)
		a.leftBehind(t, plans.Source)
	}
	return nil
}

// farewell reports what needs attention before the old cluster or namespace is deleted. It comes last: the
// plan has ended, and a failure to look is no error.
func (a *app) farewell(ctx context.Context, t *reach.Target, j *journal.Journal) {
	if a.word.SourceGone || j.Assurances.SourceGone {
		return // it is gone with its cluster
	}
	old := "cluster"
	if t.Plan.OneCluster() {
		old = "namespace " + t.Plan.Source.Namespace
	}
	var found []check.Finding
	err := t.Connected()
	if err == nil {
		found, err = volumes.Farewell(ctx, t.Plan, t.On)
	}
	if err != nil {
		fmt.Fprintf(a.ErrOut, "The checks before the deletion of the old %s could not run: %s\n", old, oneLine(err.Error()))
	}
	if len(found) > 0 {
		fmt.Fprintf(a.Out, "Before you delete the old %s:\n%s", old, findings(found))
	}
}

// leftBehind names the claims that a side keeps because their volumes did not move. Their data is a copy, and
// only the user knows whether it is still needed.
func (a *app) leftBehind(t *reach.Target, side plans.Side) {
	var names []string
	for _, c := range t.Plan.Claims {
		for o := range t.Plan.Ordinals().All() {
			if !c.Mode.Moved() {
				names = append(names, t.Plan.ClaimName(c.Template, o))
			}
		}
	}
	if len(names) > 0 {
		ref := t.Plan.On(side)
		fmt.Fprintf(a.Out, "Left on %s, with the data that the application had there. To delete them when they are no longer needed: kubectl --context %s -n %s delete pvc %s\n", ref, ref.Context, ref.Namespace, strings.Join(names, " "))
	}
}

// bridged returns which command has to run while no process carries out a plan whose names are bridged, or
// "".
func bridged(t *reach.Target) string {
	if len(t.Plan.Directories()) == 0 {
		return ""
	}
	return fmt.Sprintf("Until then a pod that restarts is found at its new address only while this runs: %s\n", t.Command("names -w"))
}

// record returns which record of an ended plan stays, and how to delete it. It returns "" if the names are
// kept, because they still need the record.
func record(t *reach.Target, j *journal.Journal) string {
	if j.KeepNames {
		return ""
	}
	if j.Detached {
		return fmt.Sprintf("When it has ended, its record stays; to delete that: %s\n", t.Command("forget"))
	}
	return fmt.Sprintf("Two ConfigMaps stay as the record of what was done; to delete them: %s\n", t.Command("forget"))
}

// granted returns how to revoke, after its end, what the orchestrator was granted for a plan. If the source's
// cluster is gone, that is on the destination alone.
func granted(t *reach.Target, direction plans.Direction, sourceGone bool) string {
	revoke := "revoke"
	if sourceGone {
		revoke = "revoke --side destination"
	}
	return fmt.Sprintf("When %s says %s, revoke what the orchestrator was granted for it: %s\n", t.Command("status"), direction.Outcome(), t.Command(revoke))
}
