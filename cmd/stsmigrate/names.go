package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/orchestrator/names"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) namesCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "names PLAN", Short: "Show the old and the new name of each pod; -w keeps both answered",
		Long: `Show the old and the new name of each pod.

With -w, keep every pod found under both names on both sides until Ctrl-C, as apply
does while it runs. Between apply and finalize a pod that restarts gets another
address: without a process that keeps the names, the other side would be sent to
the old one.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.stored(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !watch {
				_, err = fmt.Fprint(a.Out, plans.RenderNames(t.plan))
				return err
			}
			return a.keepNames(cmd.Context(), t)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep the names answered until interrupted")
	return cmd
}

// keepNames keeps the names of a plan that nobody carries.
func (a *app) keepNames(ctx context.Context, t *target) error {
	j, err := t.journal(ctx, false)
	switch {
	case err != nil:
		return err
	case len(t.plan.Directories()) == 0:
		return fmt.Errorf("plan %s leaves names alone (--names none)", t.plan.Name)
	case j.Ended() || j.Leg.Course == plans.Clean:
		return fmt.Errorf("plan %s is finalized or walked back, or about to be: its names are gone", t.plan.Name)
	}
	// Whoever carries the plan keeps the names too, and takes them away at its end.
	lease, err := t.store.Acquire(ctx, holder(), dead, a.now)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(ctx, false) }() // it expires by itself
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	go lease.Keep(background)
	keeper, err := names.Keep(background, t.plan, t.configs, a.complain)
	if err != nil {
		return err
	}
	defer keeper.Stop()
	fmt.Fprint(a.Out, plans.RenderNames(t.plan)+"\nBoth names are answered on both sides until Ctrl-C.\n")
	select {
	case <-a.stop:
	case <-ctx.Done():
	}
	return nil
}
