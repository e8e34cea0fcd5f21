package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) abortCommand() *cobra.Command {
	var unavailable string
	var cmd *cobra.Command
	cmd = a.turnCommand("abort", plans.Abort, "Abort a plan: move every ordinal back to the source, with the same volumes and the same budget",
		"Abort plan %s and move every ordinal back to %s?", func(t *reach.Target, j *journal.Journal) (func(*journal.Journal) error, error) {
			if err := added(cmd.Context(), t, j); err != nil {
				return nil, err
			}
			if unavailable == "" {
				return nil, nil
			}
			v, err := plans.ReadUnavailable("--max-unavailable", unavailable)
			a.word.MaxUnavailable = plans.Unavailable(&v, t.Plan.Count)
			return nil, err
		})
	program.Before(cmd, func() error {
		if unavailable == "" {
			return nil
		}
		_, err := plans.ReadUnavailable("--max-unavailable", unavailable)
		return err
	})
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "do not ask the plan's gates during the abort")
	cmd.Flags().BoolVar(&a.word.SkipPlaces, "skip-places", false, "do not wait until the places of the ordinals are there during the abort")
	cmd.Flags().StringVar(&unavailable, "max-unavailable", "", "how many ordinals may be unavailable during the abort, as a number or a percentage, if more than the plan allows: for a broken destination")
	a.wordFlags(cmd)
	a.leaveFlags(cmd)
	return cmd
}

// added refuses an abort, BEFORE it is recorded, while the destination has ordinals that the plan did not move. An
// orchestrator sees that itself before anything leaves, where this process reaches no cluster.
func added(ctx context.Context, t *reach.Target, j *journal.Journal) error {
	if t.On[plans.Destination] == nil || j.Leg.Direction == plans.Abort {
		return nil
	}
	set, err := clusters.Pair{Plan: t.Plan, On: t.On}.Set(ctx, plans.Destination)
	if err != nil {
		return err
	}
	if why := t.Plan.Added(set); why != "" {
		return reasons.Because(reasons.OrdinalsAdded, errors.New(why))
	}
	return nil
}
