package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/recovery"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) recoverCommand() *cobra.Command {
	f := recoverFlags{}
	cmd := &cobra.Command{
		Use: "recover FILE|PLAN", Short: "Rebuild the lost journal of a plan that is under way from the marks on its objects",
		Long: `Rebuild the lost journal of a plan that is under way from the marks on its objects.

FILE is the plan as "plan --out" wrote it and as it was applied; PLAN is its name, where only the
journal is lost. Where only the ConfigMap of the plan is lost, FILE is stored again beside its journal. Both sides are read. What was found and the journal that will be stored are printed;
it states no more than the marks prove, and the rest is read from both sides again. Nothing is written
but the two ConfigMaps of the record (and the Lease). The plan is blocked then: resume continues it,
abort moves everything back to the source.

Not in any mark, and lost: a pause, --pause-after, --until-ordinal, what the user has confirmed, and which
gates have passed (they run again).`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := f.said(cmd)
			if err != nil {
				return err
			}
			if err := f.home.Check(&a.reach, isName(args[0])); err != nil {
				return err
			}
			t, err := a.toRecover(cmd.Context(), args[0], &f.home)
			if err != nil {
				return err
			}
			return a.recover(cmd.Context(), t, said, f.home.Detach)
		},
	}
	f.add(cmd)
	a.dryRunFlag(cmd, "none", "client", "server")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	return cmd
}

// recoverFlags are the values that the user supplies where no mark has them.
type recoverFlags struct {
	direction string
	until     int32
	keepNames bool
	ended     []string
	was       []string
	home      reach.HomeFlags
}

func (f *recoverFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.direction, "direction", "", "which way the plan was going, if the marks do not say it: move, abort or finalize")
	cmd.Flags().Int32Var(&f.until, "until-ordinal", 0, "the --until-ordinal of the move, which no mark holds")
	cmd.Flags().BoolVar(&f.keepNames, "keep-names", false, "finalize was said with --keep-names, which no mark holds")
	cmd.Flags().StringArrayVar(&f.ended, "ended", nil, "vouch that the containers of a pod in flight, such as web-2, have stopped, where the node of the pod is unknown (repeat it for more)")
	cmd.Flags().StringArrayVar(&f.was, "was", nil, "KEY=VALUE: what was there before the plan, where it is noted nowhere: source-retention or destination-retention=WHENDELETED/WHENSCALED, source-budget or destination-budget=minAvailable=VALUE or maxUnavailable=VALUE, destination-range=START/REPLICAS")
	f.home.Add(cmd)
	cmd.Flags().Lookup("detach").Usage = "an orchestrator carries the plan out, as before"
}

func (f *recoverFlags) said(cmd *cobra.Command) (recovery.Said, error) {
	said := recovery.Said{Who: clusters.Holder(), KeepNames: f.keepNames, Ended: f.ended}
	directions := map[string]plans.Direction{"": "", "move": plans.Move, "abort": plans.Abort, "finalize": plans.Finalize}
	direction, known := directions[f.direction]
	if !known {
		return said, fmt.Errorf("--direction %s: expected move, abort or finalize", f.direction)
	}
	said.Direction = direction
	if cmd.Flags().Changed("until-ordinal") {
		said.Until = &f.until
	}
	var err error
	said.Was, err = recovery.ReadWas(f.was)
	return said, err
}

// toRecover finds a plan by its file, or by its name if its ConfigMap still exists.
func (a *app) toRecover(ctx context.Context, what string, home *reach.HomeFlags) (*reach.Target, error) {
	if isName(what) {
		t, err := a.reach.Stored(ctx, what)
		if errors.As(err, new(records.ErrNoPlan)) {
			err = fmt.Errorf("%w; if its ConfigMap was deleted too, give the file of the plan", err)
		}
		return t, err
	}
	t, _, err := a.fromFile(ctx, what, home)
	return t, err
}

// recover prints what was found and the resulting journal, asks for confirmation, and stores the record if
// both sides are unchanged.
func (a *app) recover(ctx context.Context, t *reach.Target, said recovery.Said, detached bool) error {
	if said.KeepNames && len(t.Plan.Directories()) == 0 {
		return fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", t.Plan.Name, t.Plan.Names.Mode)
	}
	for _, pod := range said.Ended {
		if !slices.ContainsFunc(slices.Collect(t.Plan.Ordinals().All()), func(o int32) bool { return t.Plan.Pod(plans.Source, o) == pod }) {
			return fmt.Errorf("--ended %s: plan %s has the pods %s", pod, t.Plan.Name, t.Plan.Pods(t.Plan.Ordinals()))
		}
	}
	orphaned, err := t.Store.Orphaned(ctx, t.Plan)
	if orphaned && err == nil {
		return putBack(ctx, a, t)
	}
	if err := t.Store.Lost(ctx, t.Plan); err != nil {
		return err
	}
	found, err := recovery.Recovery{Plan: t.Plan, On: t.On, Said: said}.Look(ctx)
	if found != nil {
		fmt.Fprintf(a.Out, "Found:\n  %s\n", strings.Join(found.Found, "\n  "))
	}
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	if err := t.HandBack(ctx, found.Journal, detached); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nThe journal will say:\n  %s\n", strings.Join(recovery.Words(t.Plan, found.Journal), "\n  "))
	if err := a.agree(fmt.Sprintf("Store this as the journal of plan %s? No other object is written, and the plan is blocked then.", t.Plan.Name)); err != nil {
		return err
	}
	if err := a.store(ctx, a.dry(t), said, found.Journal); err != nil {
		return err
	}
	if a.dryRun == "server" {
		return a.undone()
	}
	fmt.Fprintf(a.Out, "recovered: plan %s is blocked. To look at it: %s; to resume: %s; to abort: %s\n", t.Plan.Name, t.Command("status"), t.Command("resume"), t.Command("abort"))
	return nil
}

// putBack stores a plan again whose journal is still there.
func putBack(ctx context.Context, a *app, t *reach.Target) error {
	if err := a.agree(fmt.Sprintf("Only the ConfigMap of plan %s is lost, and its journal is there. Store the plan of this file again beside it? No other object is written.", t.Plan.Name)); err != nil {
		return err
	}
	if err := a.dry(t).Store.PutBack(ctx, t.Plan); err != nil {
		return err
	}
	if a.dryRun == "server" {
		return a.undone()
	}
	fmt.Fprintf(a.Out, "plan %s is stored again, and its journal is as it was. To look at it: %s\n", t.Plan.Name, t.Command("status"))
	return nil
}

// store writes the record while no other process has the plan, if both sides are still as they were shown.
func (a *app) store(ctx context.Context, t *reach.Target, said recovery.Said, shown *journal.Journal) error {
	lease, err := t.Store.Acquire(ctx, clusters.Holder(), clusters.Dead, a.now)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), false) }() // it expires by itself
	again, err := recovery.Recovery{Plan: t.Plan, On: t.On, Said: said}.Look(ctx)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	again.Journal.Detached, again.Journal.Observed = shown.Detached, shown.Observed
	was, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	is, err := json.Marshal(again.Journal)
	if err != nil {
		return err
	}
	if string(was) != string(is) {
		return fmt.Errorf("the objects of plan %s have changed since they were shown, and nothing was written: run the command again", t.Plan.Name)
	}
	return t.Store.Restore(ctx, t.Plan, again.Journal)
}
