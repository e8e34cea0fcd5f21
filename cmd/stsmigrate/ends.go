package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/preflight/volumes"
)

// conclude says how a run ended and what comes next.
func (a *app) conclude(t *target, direction plans.Direction, p engine.Progress, err error) error {
	verb := map[plans.Direction]string{plans.Move: "apply", plans.Abort: "abort", plans.Finalize: "finalize"}[direction]
	back := "; to abort: " + t.command("abort")
	if direction != plans.Move {
		back = ""
	}
	switch {
	case errors.Is(err, engine.ErrStopped):
		return exitCode{code: exitInterrupted, message: fmt.Sprintf("stopped; everything written so far is recorded. To go on: %s%s", t.command(verb), back)}
	case err != nil:
		return fmt.Errorf("%w; everything written so far is recorded, to go on: %s", err, t.command(verb))
	case p.Overtaken:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("%s. To watch it: %s", p.Reason, t.command("status -w"))}
	case p.Kind == engine.Blocked:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("blocked: %s\nNothing more is written. When that is mended: %s%s", p.Reason, t.command("resume"), back)}
	case p.Kind == engine.Paused:
		fmt.Fprintf(a.Out, "%s; no ordinal is in flight. To go on: %s%s\n%s", p.Reason, t.command("resume"), back, bridged(t))
	case p.Outcome == plans.Split:
		fmt.Fprintf(a.Out, "split, as asked: %s keeps the ordinals below, %s has the others.\nTo move the rest: %s%s\n", t.plan.Source, t.plan.Destination, t.command("resume"), back)
		fmt.Fprint(a.Out, bridged(t))
	case p.Outcome == plans.Moved:
		if p.Downtime != nil {
			fmt.Fprintf(a.Out, "each wave was %s\n", p.Downtime)
		}
		fmt.Fprintf(a.Out, "moved: %d ordinals of %s are on %s.\nTo clean the source up: %s%s\n", t.plan.Count, t.plan.Source, t.plan.Destination, t.command("finalize"), back)
		fmt.Fprint(a.Out, bridged(t))
	case p.Outcome == plans.Aborted:
		fmt.Fprintf(a.Out, "aborted: everything is on %s as it was before.\n", t.plan.Source)
		a.leftBehind(t, plans.Destination)
		fmt.Fprint(a.Out, record(t, &plans.Journal{}))
	case p.Outcome == plans.Finalized:
		fmt.Fprintf(a.Out, "finalized: %s is on its own; the source set is gone. What else the namespace %s has (Services, ConfigMaps, budgets of yours) is left for you.\n", t.plan.Destination, t.plan.Source.Namespace)
		a.leftBehind(t, plans.Source)
	}
	return nil
}

// farewell says what is to be seen to before what the set has left is deleted. It is the last
// word on it: the plan has ended, and what cannot be looked at any more is no error.
func (a *app) farewell(ctx context.Context, t *target, j *plans.Journal) {
	if a.word.SourceGone || j.Assurances.SourceGone {
		return // it has gone with its cluster
	}
	old := "cluster"
	if t.plan.OneCluster() {
		old = "namespace " + t.plan.Source.Namespace
	}
	var found []check.Finding
	err := t.connected()
	if err == nil {
		found, err = volumes.Farewell(ctx, t.plan, t.on)
	}
	if err != nil {
		fmt.Fprintf(a.ErrOut, "What has to be seen to before the old %s is deleted could not be looked up: %s\n", old, oneLine(err.Error()))
	}
	if len(found) > 0 {
		fmt.Fprintf(a.Out, "Before you delete the old %s:\n%s", old, findings(found))
	}
}

// leftBehind names the claims that a side keeps because their volumes did not move. Their
// data is a copy, and only the person knows whether it is still needed.
func (a *app) leftBehind(t *target, side plans.Side) {
	var names []string
	for _, c := range t.plan.Claims {
		for o := range t.plan.Ordinals().All() {
			if !c.Mode.Moved() {
				names = append(names, t.plan.ClaimName(c.Template, o))
			}
		}
	}
	if len(names) > 0 {
		ref := t.plan.On(side)
		fmt.Fprintf(a.Out, "Left on %s, with what the application had there: delete them when nobody needs them: kubectl --context %s -n %s delete pvc %s\n", ref, ref.Context, ref.Namespace, strings.Join(names, " "))
	}
}

// bridged says what has to run while nobody carries a plan whose names are bridged, or nothing.
func bridged(t *target) string {
	if len(t.plan.Directories()) == 0 {
		return ""
	}
	return fmt.Sprintf("Until then a pod that restarts is found at its new address only while this runs: %s\n", t.command("names -w"))
}

// record says what stays of a plan that has ended. Who keeps its names still needs that.
func record(t *target, j *plans.Journal) string {
	if j.KeepNames {
		return ""
	}
	if j.Detached {
		return fmt.Sprintf("When it has ended, its record stays; to delete that: %s\n", t.command("forget"))
	}
	return fmt.Sprintf("Two ConfigMaps stay as the record of what was done; to delete them: %s\n", t.command("forget"))
}

// granted says how to take away what the orchestrator was given for a plan when that has ended; with a source's cluster
// that is gone, from the destination alone.
func granted(t *target, direction plans.Direction, sourceGone bool) string {
	revoke := "revoke"
	if sourceGone {
		revoke = "revoke --side destination"
	}
	return fmt.Sprintf("When %s says %s, take away what the orchestrator was given for it: %s\n", t.command("status"), direction.Outcome(), t.command(revoke))
}
