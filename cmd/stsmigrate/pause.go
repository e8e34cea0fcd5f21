package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause PLAN", Short: "Stop a plan where no ordinal is in flight", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := t.pause(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "plan %s pauses when the ordinal under way has arrived. To resume: %s\n", t.plan.Name, t.command("resume"))
			return nil
		},
	}
}

func (t *target) pause(ctx context.Context) error {
	underWay := func(j *journal.Journal) error {
		if j.Outcome != "" {
			return fmt.Errorf("plan %s is not under way (%s)", t.plan.Name, j.Outcome)
		}
		return nil
	}
	j, err := t.store.JournalOrNew(ctx, t.plan)
	if err != nil {
		return err
	}
	if j.Detached {
		return t.declare(ctx, func(j *journal.Journal, d *plans.Declaration) error {
			d.Paused = true
			return underWay(j)
		})
	}
	return t.store.Change(ctx, t.plan, func(j *journal.Journal) error {
		j.Paused = true
		return underWay(j)
	})
}
