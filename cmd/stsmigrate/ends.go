package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/cmd/internal/findings"
	"github.com/stsmigrate/stsmigrate/cmd/internal/hints"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// conclude reports how a run ended, what it has left in flight, and which command comes next.
func (a *app) conclude(t *reach.Target, j *journal.Journal, direction plans.Direction, p engine.Progress, left stops.Remains, err error) error {
	verb := map[plans.Direction]string{plans.Move: "apply", plans.Abort: "abort", plans.Finalize: "finalize"}[direction]
	back := wayBack(t, direction, p)
	switch {
	case errors.Is(err, engine.ErrStopped):
		return stoppedRun(t, p, left, back)
	case err != nil && (j != nil || direction == plans.Move):
		return down(failed(t, "resume", err), left)
	case err != nil: // what was asked for may not be recorded: `resume` would go on in the direction before
		return down(failed(t, verb, err), left)
	case p.Overtaken:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("%s. To watch it: %s", reasons.Tagged(p.ID, p.Reason), t.Command("status -w"))}
	case p.Kind == engine.Blocked:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("blocked: %s\n%sNothing more is written. When the cause is fixed: %s%s%s", reasons.Tagged(p.ID, p.Reason), left.Sentence(), t.Command("resume"), back, a.explained(p.ID))}
	case p.Kind == engine.Paused:
		fmt.Fprintf(a.Out, "%s; no ordinal is in flight. To resume: %s%s\n%s", p.Reason, t.Command("resume"), back, hints.Bridged(t))
	default:
		a.tellOutcome(t, j, p, back)
	}
	return nil
}

// wayBack returns the words about the command that turns the plan into another direction, or "" if there is none.
func wayBack(t *reach.Target, direction plans.Direction, p engine.Progress) string {
	switch {
	case direction == plans.Abort && !p.Step.Op.Closes():
		return "; to turn the plan to the destination again: " + t.Command("apply")
	case direction == plans.Finalize && p.Step.Op == plans.Retire && p.ID != reasons.SetTerminating:
		return "; nothing of the source is deleted yet, and to roll back: " + t.Command("abort")
	case direction != plans.Move:
		return ""
	}
	return "; to abort: " + t.Command("abort")
}

// stoppedRun returns the exit code and the message of a run that was stopped. They depend on what is left in flight.
func stoppedRun(t *reach.Target, p engine.Progress, left stops.Remains, back string) exitCode {
	switch {
	case left.InFlight != nil:
		return exitCode{code: exitInFlight, message: fmt.Sprintf("stopped in flight: %s. To resume: %s%s", left.InFlight.Message, t.Command("resume"), back)}
	case p.Kind != engine.Stopped && left.Unread != nil:
		return exitCode{code: exitInterrupted, message: fmt.Sprintf("stopped; everything written so far is recorded. Whether an ordinal is in flight could not be read (%s): see %s. To resume: %s%s", oneLine(left.Unread.Error()), t.Command("status"), t.Command("resume"), back)}
	}
	return exitCode{code: exitInterrupted, message: strings.TrimSuffix(fmt.Sprintf("stopped; no ordinal is in flight. To resume: %s%s\n%s", t.Command("resume"), back, hints.Bridged(t)), "\n")}
}

// tellOutcome reports the outcome of a leg that has come to its end, and what to do after it.
func (a *app) tellOutcome(t *reach.Target, j *journal.Journal, p engine.Progress, back string) {
	switch p.Outcome {
	case plans.Split:
		fmt.Fprintf(a.Out, "split, as asked: %s keeps the ordinals below, %s has the others.\nTo move the rest: %s%s\n%s", t.Plan.Source, t.Plan.Destination, t.Command("resume"), back, hints.Bridged(t))
	case plans.Moved:
		if p.Downtime != nil {
			fmt.Fprintf(a.Out, "each wave was %s\n", p.Downtime)
		}
		fmt.Fprintf(a.Out, "moved: %d ordinals of %s are on %s.\nTo clean the source up: %s%s\n%s", t.Plan.Count, t.Plan.Source, t.Plan.Destination, t.Command("finalize"), back, hints.Bridged(t))
	case plans.Aborted:
		fmt.Fprintf(a.Out, "aborted: every ordinal is on %s%s.\n", t.Plan.Source, hints.Before(j))
		fmt.Fprint(a.Out, hints.LeftBehind(t, plans.Destination))
		fmt.Fprint(a.Out, hints.Record(t, &journal.Journal{}))
	case plans.Finalized:
		fmt.Fprintf(a.Out, "finalized: %s is on its own; the source set is gone. Other objects of the namespace %s (Services, ConfigMaps, your own budgets) are left unchanged.\n%s", t.Plan.Destination, t.Plan.Source.Namespace, hints.Unbound(j))
		fmt.Fprint(a.Out, hints.LeftBehind(t, plans.Source))
	}
}

// leaves is how long a run that has ended looks at what it leaves in flight.
const leaves = 10 * time.Second

// left returns what a run has left in flight that has not ended as it should.
func (a *app) left(ctx context.Context, t *reach.Target, last, p engine.Progress, err error) stops.Remains {
	if err == nil && p.Kind != engine.Blocked || p.Kind == engine.Stopped || p.Overtaken {
		return stops.Remains{}
	}
	ctx, cancel := context.WithTimeout(ctx, leaves)
	defer cancel()
	v, unread := a.source(t).Status(ctx)
	return stops.After(t.Plan, v, unread, last, a.now())
}

// atOnce says what is left in flight by a process that ends at once, and returns its exit code. A view that was drawn is
// gone, and takes no more messages.
func (a *app) atOnce(to io.Writer) int {
	if w := a.watch.Load(); w != nil {
		if what := w.AtOnce(); what != "" {
			fmt.Fprintln(to, what)
			return exitInFlight
		}
	}
	return exitInterrupted
}

// down adds what is down to the error that has ended a run.
func down(err error, left stops.Remains) error {
	if left.InFlight == nil {
		return err
	}
	return fmt.Errorf("%w; meanwhile %s", err, left.InFlight.Message)
}

// failed adds the next command to the error that has ended a run. Only with its journal is everything recorded.
func failed(t *reach.Target, verb string, err error) error {
	switch {
	case errors.As(err, new(records.ErrLeaseTaken)):
		return fmt.Errorf("%w; to watch it: %s", err, t.Command("status -w"))
	case errors.As(err, new(records.ErrNoJournal)):
		return fmt.Errorf("%w; to rebuild it: %s, with the file of the plan for its name if its record is gone too", err, t.Command("recover"))
	}
	return fmt.Errorf("%w; everything written so far is recorded, to resume: %s", err, t.Command(verb))
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
		found, err = volumes.Farewell(ctx, t.Plan, t.On, a.caller(t, j))
	}
	if err != nil {
		fmt.Fprintf(a.ErrOut, "The checks before the deletion of the old %s could not run: %s\n", old, oneLine(err.Error()))
	}
	if len(found) > 0 {
		fmt.Fprintf(a.Out, "Before you delete the old %s:\n%s", old, findings.Text(found, a.width()))
	}
}
