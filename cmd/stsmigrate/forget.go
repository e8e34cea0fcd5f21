package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

func (a *app) forgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "forget PLAN", Short: "Delete the record of a plan that has ended: its ConfigMaps and its Lease",
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.forget(cmd.Context(), args[0]) },
	}
	a.dryRunFlag(cmd, "none", "client", "server")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) forget(ctx context.Context, name string) error {
	t, err := a.reach.Recorded(ctx, name)
	if err != nil {
		return err
	}
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if err != nil {
		return err
	}
	if !j.Ended() {
		return t.NotEnded(j)
	}
	if err := a.agree(fmt.Sprintf("Delete the record of plan %s (%s)? No other record shows what was moved, and when.", name, j.Outcome)); err != nil {
		return err
	}
	t = a.dry(t)
	said := fmt.Sprintf("the record of plan %s is gone\n", name)
	if j.Detached { // the orchestrator deletes the journal when the plan is gone
		said = fmt.Sprintf("plan %s is gone, and the orchestrator in namespace %s deletes its journal\n", name, t.Home.Namespace)
		err = records.Undeclare(ctx, t.Home.Client, t.Home.Namespace, t.Plan)
	} else {
		err = t.Store.Forget(ctx, t.Plan, clusters.Holder(), clusters.Dead, a.now)
	}
	if err == nil && a.dryRun != "server" {
		fmt.Fprint(a.Out, said)
	}
	if err != nil {
		return err
	}
	return a.undone()
}
