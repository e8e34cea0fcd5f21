package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/verify"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify PLAN", Short: "Compare what is in both clusters with a plan and its journal",
		Long: `Compare what is in both clusters with a plan and its journal: the ranges of both sets, where each
ordinal is, its claims and volumes and whether they are protected, both budgets, and after the end
that nothing of the plan is left on any object. It can run at any time, also while a process carries
the plan out, and writes nothing. The exit code is 0 if nothing differs, and 3 if anything does.`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args[0]) },
	}
	a.outputFlag(cmd)
	return cmd
}

func (a *app) verify(ctx context.Context, name string) error {
	if err := a.knownOutput(); err != nil {
		return err
	}
	t, err := a.reach.Stored(ctx, name)
	if err != nil {
		return err
	}
	report, err := verify.Plan(ctx, clusters.Pair{Plan: t.Plan, On: t.On}, t.Store, a.now)
	if err != nil {
		return err
	}
	if err := a.print(report, report.Table); err != nil {
		return err
	}
	if n := len(report.Differences); n > 0 {
		return exitCode{code: exitRefused, message: fmt.Sprintf("plan %s: %d of %d facts are not as the plan and its journal say; %s shows what the plan does about it, and docs/ways-out.md how to undo what others did", name, n, report.Compared, t.Command("status"))}
	}
	return nil
}
