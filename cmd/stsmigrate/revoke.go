package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) revokeCommand() *cobra.Command {
	var side string
	cmd := &cobra.Command{
		Use: "revoke PLAN", Short: "Take away what an orchestrator was given for one plan: its Roles and the consent of the namespaces",
		Long: `Take away what an orchestrator was given for one plan: the Roles and bindings that stsmigrate rbac
printed, and what the namespaces agree to of it. With --side, of one side alone, by its
administrator. A plan that is under way stops before its next ordinal.`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.revoke(cmd.Context(), args[0], side) },
	}
	cmd.Flags().StringVar(&side, "side", "", "source or destination (default: both)")
	a.dryRunFlag(cmd, "none", "client", "server")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) revoke(ctx context.Context, name, side string) error {
	if err := oneSide(side); err != nil {
		return err
	}
	t, err := a.reach.Recorded(ctx, name)
	if err != nil {
		return err
	}
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Take away the Roles and the consent of plan %s, which has ended (%s)?", name, j.Outcome)
	if !j.Ended() {
		question = fmt.Sprintf("Plan %s has not ended: it stops before its next ordinal, and cannot be aborted or finalized by the orchestrator either. Take its Roles and consent away?", name)
	}
	if err := a.agree(question); err != nil {
		return err
	}
	t = a.dry(t)
	var errs []error
	for _, s := range plans.Sides() {
		if side != "" && side != string(s) {
			continue
		}
		if t.On[s] == nil {
			errs = append(errs, fmt.Errorf("nothing was taken away on the %s: %w", s, t.Lost[s]))
			continue
		}
		gone, err := access.Revoke(ctx, t.Plan, s, t.On)
		for _, what := range gone {
			fmt.Fprintf(a.Out, "taken away on the %s: %s\n", s, what)
		}
		if len(gone) == 0 && err == nil {
			fmt.Fprintf(a.Out, "there is nothing to take away on the %s\n", s)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return a.undone()
}
