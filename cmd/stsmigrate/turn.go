package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/rehearsal"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// turn is what a user wants of a stored plan from now on.
type turn struct {
	direction plans.Direction
	// turns reports that a plan that is being aborted or finalized turns to the destination again.
	turns  bool
	limits plans.Limits
	// set, if not nil, changes the journal BEFORE this process takes the plan over. A detached plan is changed by its
	// orchestrator, for the same request.
	set      func(*journal.Journal) error
	question string
}

// turnCommand returns a command that gives a stored plan another direction. before, if not nil, returns what the
// journal has to say before that, or why the request has no meaning.
func (a *app) turnCommand(name string, direction plans.Direction, short, question string, before func(*reach.Target, *journal.Journal) (set func(*journal.Journal) error, err error)) *cobra.Command {
	var speed pace
	cmd := &cobra.Command{
		Use: name + " PLAN", Short: short, Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				q, err := known(cmd.Context(), a, args[0], err)
				if err != nil {
					return err
				}
				if f := cmd.Flags().Lookup("max-unavailable"); f != nil && f.Changed {
					return fmt.Errorf("--max-unavailable needs the record of the plan, which is where its orchestrator is: leave it out, or set spec.request of StatefulSetMigration %s, with maxUnavailable as a number", args[0])
				}
				return q.turn(cmd.Context(), direction, plans.Limits{}, speed)
			}
			j, err := a.toTurn(cmd.Context(), t, direction)
			if err != nil {
				return err
			}
			if j.Outcome == direction.Outcome() {
				fmt.Fprintf(a.Out, "plan %s: %s; nothing to do\n", t.Plan.Name, j.Outcome)
				return nil
			}
			w := turn{direction: direction, question: fmt.Sprintf(question, t.Plan.Name, t.Plan.Source)}
			if direction == plans.Finalize && !a.keepsNames {
				w.question += taken(t.Plan)
			}
			if before != nil {
				if w.set, err = before(t, j); err != nil {
					return err
				}
			}
			return a.proceed(cmd.Context(), t, j, w, speed)
		},
	}
	a.carryFlags(cmd, &speed)
	a.dryRunFlag(cmd, "none", "client", "server")
	return cmd
}

// proceed asks for confirmation and carries the plan out as it is wanted now. What has no meaning is refused before
// the user is asked. A dry run lists what follows, and ends there or with the answers of the API servers.
func (a *app) proceed(ctx context.Context, t *reach.Target, j *journal.Journal, w turn, speed pace) error {
	if cancels(t, j, w) {
		return cancel(ctx, a, t, w)
	}
	trial := *j
	if w.set != nil {
		if err := w.set(&trial); err != nil {
			return err
		}
	}
	if err := requests.Direct(t.Plan, &trial, plans.Command{Direction: w.direction, Turns: w.turns, Limits: w.limits}); err != nil {
		return err
	}
	if err := trial.Assure(t.Plan, a.word); err != nil { // as the run does, which comes after the first write
		return err
	}
	if a.dryRun == "client" || a.dryRun == "server" {
		fmt.Fprint(a.Out, preview.RenderTurn(t.Plan, trial.Leg, trial.Done+1)+pauses(t.Plan, &trial))
		if a.dryRun == "server" {
			return a.tried(ctx, t, j, w, speed)
		}
		return unwritten()
	}
	if err := a.confirm(w.question); err != nil {
		return err
	}
	return a.carry(ctx, t, &trial, w, speed)
}

// wanted is the request of this process.
func (a *app) wanted(ctx context.Context, t *reach.Target, w turn) plans.Command {
	out := plans.Command{Direction: w.direction, Turns: w.turns, By: clusters.User(ctx, t.Home.Client), SkipGates: a.skipGates, Assurance: a.word}
	if w.turns {
		out.Limits = w.limits
	}
	return out
}

// again turns a plan that is being aborted or finalized to the destination again.
func (a *app) again(ctx context.Context, t *reach.Target, j *journal.Journal, far *routeFlags, speed pace) error {
	if err := a.reaches(t, j, !j.Detached); err != nil {
		return err
	}
	route, err := far.route()
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Plan %s is being aborted. Turn it, and move every ordinal to %s again?", t.Plan.Name, t.Plan.Destination)
	switch {
	case j.Leg.Direction == plans.Finalize:
		question = fmt.Sprintf("Plan %s is being finalized, and nothing is deleted yet. Stop that, so that %s stays as it is until finalize or abort?", t.Plan.Name, t.Plan.Source)
	case route.Until != nil:
		question = fmt.Sprintf("Plan %s is being aborted. Turn it, and move the ordinals from %d upwards to %s again?", t.Plan.Name, *route.Until, t.Plan.Destination)
	}
	return a.proceed(ctx, t, j, turn{direction: plans.Move, turns: true, limits: route, question: question}, speed)
}

// tried sends what proceed writes as dry runs: to the home alone for an orchestrator, which sends the rest, and
// otherwise to both sides, up to the next ordinals that have to stop.
func (a *app) tried(ctx context.Context, t *reach.Target, j *journal.Journal, w turn, speed pace) error {
	if j.Detached {
		if err := a.declare(ctx, t.Dry(), w.direction, w.limits, speed); err != nil {
			return err
		}
		return a.undone()
	}
	command := a.wanted(ctx, t, w)
	err := a.rehearse(func() (*rehearsal.Outcome, error) {
		return rehearsal.Turn(ctx, t.Plan, rehearsal.Ends{Home: t.Home.Client, Namespace: t.Home.Namespace, On: t.On}, a.now, w.set, command, func(e *engine.Engine) { runner.Checked(e, t.On, a.now) })
	})
	return cmp.Or(err, unwritten())
}

// pauses says where a plan will pause, if it does.
func pauses(p *plans.Plan, j *journal.Journal) string {
	if j.PauseAt == 0 {
		return ""
	}
	return fmt.Sprintf("It pauses when %s has arrived.\n", p.Pod(plans.Source, j.PauseAt))
}

// toTurn reads the journal of a plan that will change its direction. For an orchestrator the request goes to
// the home alone. Without an orchestrator, this process needs both clusters, but not to end a plan that was never begun.
func (a *app) toTurn(ctx context.Context, t *reach.Target, direction plans.Direction) (*journal.Journal, error) {
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if err != nil || cancels(t, j, turn{direction: direction}) {
		return j, err
	}
	return j, a.reaches(t, j, !j.Detached)
}

// cancels reports whether a plan is to be aborted that was never begun, and whose clusters this process does not reach.
func cancels(t *reach.Target, j *journal.Journal, w turn) bool {
	return w.direction == plans.Abort && !j.Detached && j.Untouched() && t.Connected() != nil
}

// cancel ends a plan that was never begun: nothing of it is written but its record.
func cancel(ctx context.Context, a *app, t *reach.Target, w turn) error {
	fmt.Fprintf(a.ErrOut, "Plan %s was never begun, so that nothing of it is written in its clusters, of which one does not answer (%s). Only its record is changed.\n", t.Plan.Name, oneLine(t.Connected().Error()))
	if a.dryRun == "client" || a.dryRun == "server" {
		return unwritten()
	}
	if err := a.confirm(w.question); err != nil {
		return err
	}
	command := a.wanted(ctx, t, w)
	err := t.Store.Change(ctx, t.Plan, func(j *journal.Journal) error {
		cancelled, err := requests.Cancel(t.Plan, j, command, a.now())
		if err == nil && !cancelled {
			err = fmt.Errorf("plan %s was begun meanwhile, and its clusters are needed to roll it back: %w", t.Plan.Name, t.Connected())
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "plan %s: %s\n", t.Plan.Name, plans.Aborted)
	return nil
}

// reaches returns an error if this process does not reach a cluster that it needs. itself reports that it writes to the
// clusters, and not an orchestrator.
func (a *app) reaches(t *reach.Target, j *journal.Journal, itself bool) error {
	switch {
	case a.word.SourceGone || j.Assurances.SourceGone:
		return a.without(t, itself)
	case itself:
		return t.Connected()
	}
	return nil
}

// without lets the plan continue without its source's cluster. It returns an error if that cluster responds,
// if the user gave the UID of another cluster, or if this process also needs a destination that is lost.
func (a *app) without(t *reach.Target, itself bool) error {
	source := t.Plan.Source
	switch {
	case a.word.SourceGone && a.sourceGone != source.Cluster:
		return fmt.Errorf("--source-gone %s: the source of plan %s is in the cluster %s (context %q)", a.sourceGone, t.Plan.Name, source.Cluster, source.Context)
	case t.On[plans.Source] != nil:
		return fmt.Errorf("the cluster of %s answers (%s): it is not gone, and finalize has to clean it up", source, source.Cluster)
	case itself && t.Lost[plans.Destination] != nil:
		return t.Lost[plans.Destination]
	}
	t.On = t.On.Gone()
	return nil
}

// sourceGoneFlag adds the flag with which the user vouches that the source's cluster does not exist any more.
func (a *app) sourceGoneFlag(cmd *cobra.Command) {
	var cluster string
	cmd.Flags().StringVar(&cluster, "source-gone", "", "do without the source's cluster, which does not exist any more: the UID of its namespace kube-system, as status -o yaml has it")
	program.Before(cmd, func() error {
		a.word.SourceGone, a.sourceGone = cmd.Flags().Changed("source-gone"), types.UID(cluster)
		return nil
	})
}

// wordFlags adds the flags with which the user vouches for something when a plan continues.
func (a *app) wordFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.word.NodeGone, "node-gone", "", "vouch that a node is off, or cannot use the volumes of the ordinals in flight or next to leave: nothing of them can still run or write there")
	cmd.Flags().BoolVar(&a.word.Readopt, "readopt", false, "vouch that the sets and volumes that lost the mark of the plan, or were deleted and recreated, are what they were")
}

// leaveFlags adds the flags with which the user lets the next ordinals leave, although the side that receives them may not
// serve them as the other one did.
func (a *app) leaveFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.word.OtherTemplate, "other-template", "", "let the ordinals start with the pod template of the side that receives them, which differs: the word that the reason of the plan has for these two templates")
	cmd.Flags().StringSliceVar(&a.word.OtherCopies, "other-copy", nil, "let the ordinals start with an object of the side that receives them, which differs: KIND/NAME:WORD, as the reason of the plan has it (repeatable, or a comma list)")
	cmd.Flags().StringSliceVar(&a.word.Ignore, "ignore", nil, "let the ordinals leave in spite of what these checks find on the side that receives them: they may stay down there (repeatable, or a comma list)")
	program.Before(cmd, func() error {
		known := preflight.Acceptable()
		for _, name := range a.word.Ignore {
			if !slices.Contains(known, name) {
				return fmt.Errorf("--ignore %s: expected one of %s%s", name, strings.Join(known, ", "), program.DidYouMean(name, known))
			}
		}
		if w := a.word.OtherTemplate; w != "" && !plans.IsTemplateWord(w) {
			return fmt.Errorf("--other-template %s: expected the 8 digits that the reason of the plan has, as status shows it", w)
		}
		for _, w := range a.word.OtherCopies {
			if !plans.IsCopyWord(w) {
				return fmt.Errorf("--other-copy %s: expected an object and 8 digits, such as Secret/web:0123abcd, as the reason of the plan has them", w)
			}
		}
		return nil
	})
}
