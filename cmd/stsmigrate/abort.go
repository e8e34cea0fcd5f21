package main

import (
	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) abortCommand() *cobra.Command {
	cmd := a.turnCommand("abort", plans.Abort, "Abort a plan: move every ordinal back to the source, with the same volumes and the same budget",
		"Abort plan %s and move every ordinal back to %s?", nil)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "do not ask the plan's gates during the abort")
	cmd.Flags().Int32Var(&a.word.MaxUnavailable, "max-unavailable", 0, "how many ordinals may be unavailable during the abort, if more than the plan allows: for a broken destination")
	a.wordFlags(cmd)
	return cmd
}
