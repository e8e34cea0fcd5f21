package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// turnCommand returns a command that gives a stored plan another direction. before, if not nil, is called
// after the user has confirmed.
func (a *app) turnCommand(name string, direction plans.Direction, short, question string, before func(context.Context, *reach.Target, *journal.Journal) error) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: name + " PLAN", Short: short, Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			j, err := a.toTurn(cmd.Context(), t)
			if err != nil {
				return err
			}
			if j.Outcome == direction.Outcome() {
				fmt.Fprintf(a.Out, "plan %s: %s; nothing to do\n", t.Plan.Name, j.Outcome)
				return nil
			}
			if err := engine.Redirect(t.Plan, j, direction); err != nil {
				return err
			}
			if a.dryRun == "client" {
				fmt.Fprint(a.Out, preview.RenderTurn(t.Plan, j.Leg, j.Done+1))
				return exitCode{code: exitDone, message: "dry run: nothing was written"}
			}
			if err := a.confirm(fmt.Sprintf(question, t.Plan.Name, t.Plan.Source)); err != nil {
				return err
			}
			if before != nil {
				if err := before(cmd.Context(), t, j); err != nil {
					return err
				}
			}
			return a.carry(cmd.Context(), t, j, direction, plans.Limits{}, timeout)
		},
	}
	a.carryFlags(cmd, &timeout)
	a.dryRunFlag(cmd, "none", "client")
	return cmd
}

// toTurn reads the journal of a plan that will change its direction. For an orchestrator the request goes to
// the home alone. Without an orchestrator, this process needs both clusters.
func (a *app) toTurn(ctx context.Context, t *reach.Target) (*journal.Journal, error) {
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if err != nil {
		return nil, err
	}
	if a.word.SourceGone || j.Assurances.SourceGone {
		return j, a.without(t, j)
	}
	if !j.Detached {
		err = t.Connected()
	}
	return j, err
}

// without lets the plan continue without its source's cluster. It returns an error if that cluster responds,
// if the user gave the UID of another cluster, or if this process also needs a destination that is lost.
func (a *app) without(t *reach.Target, j *journal.Journal) error {
	source := t.Plan.Source
	switch {
	case a.word.SourceGone && a.sourceGone != source.Cluster:
		return fmt.Errorf("--source-gone %s: the source of plan %s is in the cluster %s (context %q)", a.sourceGone, t.Plan.Name, source.Cluster, source.Context)
	case t.On[plans.Source] != nil:
		return fmt.Errorf("the cluster of %s answers (%s): it is not gone, and finalize has to clean it up", source, source.Cluster)
	case !j.Detached && t.Lost[plans.Destination] != nil:
		return t.Lost[plans.Destination]
	}
	t.On = t.On.Gone()
	return nil
}

// wordFlags adds the flags with which the user vouches for something when a plan continues.
func (a *app) wordFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.word.NodeGone, "node-gone", "", "vouch that a node is off, or cannot use the volumes of the ordinals in flight: nothing of them can still run or write there")
	cmd.Flags().BoolVar(&a.word.Readopt, "readopt", false, "vouch that the sets and volumes that lost the mark of the plan, or were deleted and recreated, are what they were")
}
