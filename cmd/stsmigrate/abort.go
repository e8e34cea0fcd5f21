package main

import (
	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) abortCommand() *cobra.Command {
	var unavailable string
	cmd := a.turnCommand("abort", plans.Abort, "Abort a plan: move every ordinal back to the source, with the same volumes and the same budget",
		"Abort plan %s and move every ordinal back to %s?", func(t *reach.Target, _ *journal.Journal) (func(*journal.Journal) error, error) {
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
	cmd.Flags().StringVar(&unavailable, "max-unavailable", "", "how many ordinals may be unavailable during the abort, as a number or a percentage, if more than the plan allows: for a broken destination")
	a.wordFlags(cmd)
	return cmd
}
