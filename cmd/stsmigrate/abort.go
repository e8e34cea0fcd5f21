package main

import (
	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) abortCommand() *cobra.Command {
	cmd := a.turnCommand("abort", plans.Abort, "Walk a plan back: every ordinal to the source, same volumes, same budget",
		"Walk plan %s back, every ordinal to %s?", nil)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "do not ask the plan's gates during an abort")
	cmd.Flags().Int32Var(&a.word.MaxUnavailable, "max-unavailable", 0, "let so many ordinals be unavailable during an abort, if that is more than the plan allows: for a destination where something is broken")
	a.wordFlags(cmd)
	return cmd
}
