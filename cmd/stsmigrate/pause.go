package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) pauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause PLAN", Short: "Stop a plan where no ordinal is in flight", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				q, err := known(cmd.Context(), a, args[0], err)
				if err != nil {
					return err
				}
				return q.pause(cmd.Context())
			}
			if a.dryRun == "client" {
				j, err := t.Store.JournalOrNew(cmd.Context(), t.Plan)
				if err == nil {
					err = underWay(t.Plan, j)
				}
				if err != nil {
					return err
				}
				return a.confirm(fmt.Sprintf("plan %s would pause when the ordinal under way has arrived, unless it is the last one to move", t.Plan.Name))
			}
			if err := pause(cmd.Context(), a.dry(t), a.now); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "plan %s pauses when the ordinal under way has arrived; if it was the last one to move, the plan ends instead. To resume: %s\n", t.Plan.Name, t.Command("resume"))
			return a.undone()
		},
	}
	a.dryRunFlag(cmd, "none", "client", "server")
	return cmd
}

func underWay(p *plans.Plan, j *journal.Journal) error {
	if j.Outcome != "" {
		return fmt.Errorf("plan %s is not under way (%s)", p.Name, j.Outcome)
	}
	return nil
}

func pause(ctx context.Context, t *reach.Target, now func() time.Time) error {
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if err != nil {
		return err
	}
	if j.Detached {
		return t.Declare(ctx, func(j *journal.Journal, d *plans.Declaration) error {
			d.Paused = true
			return underWay(t.Plan, j)
		})
	}
	by := clusters.User(ctx, t.Home.Client)
	return t.Store.Change(ctx, t.Plan, func(j *journal.Journal) error {
		if !j.Paused {
			j.Timeline.Record(now(), journal.Event{Kind: journal.Requested, By: by, What: "pause"})
		}
		j.Paused = true
		return underWay(t.Plan, j)
	})
}
