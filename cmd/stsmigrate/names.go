package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

func (a *app) namesCommand() *cobra.Command {
	var watch, remove bool
	cmd := &cobra.Command{
		Use: "names PLAN", Short: "Show the old and the new name of each pod; -w keeps both answered, --remove ends what finalize kept",
		Long: `Show the old and the new name of each pod.

With -w, keep every pod found under both names on both sides until Ctrl-C, as apply
does while it runs. Between apply and finalize a pod that restarts gets another
address: without a process that keeps the names, the other side would be sent to
the old one. The same holds after "finalize --keep-names", until --remove takes the
old names away. Of a plan that an orchestrator carries out, it keeps the names and takes
them away, and --remove asks it to.

While a plan whose budget is one ordinal rests with ordinals on both sides, -w also
lets the nodes of either side be drained: the unit goes to the side that needs it.`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove && watch {
				return errors.New("say -w or --remove, not both")
			}
			if watch && a.dryRun != "none" {
				return errors.New("--dry-run is for --remove: -w writes what the pods need, for as long as it runs")
			}
			if err := a.knownOutput(); err != nil {
				return err
			}
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if remove {
				return a.removeNames(cmd.Context(), t)
			}
			if watch {
				return a.keepNames(cmd.Context(), t)
			}
			if err := t.Connected(); err != nil {
				return err
			}
			return a.print(preview.NamesOf(t.Plan), func() string { return preview.RenderNames(t.Plan) })
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep the names answered until interrupted")
	cmd.Flags().BoolVar(&remove, "remove", false, "take away the names that finalize kept")
	a.sourceGoneFlag(cmd)
	a.outputFlag(cmd)
	a.dryRunFlag(cmd, "none", "client")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	return cmd
}

// removeNames deletes the names that "finalize --keep-names" has left. If an orchestrator carries out the
// plan, it requests the deletion from the orchestrator. A crash in between leaves the journal unchanged, so
// that the command can be repeated.
func (a *app) removeNames(ctx context.Context, t *reach.Target) error {
	j, err := t.Journal(ctx, false)
	switch {
	case err != nil:
		return err
	case !j.Ended():
		return fmt.Errorf("plan %s is under way: its names go with %s or %s", t.Plan.Name, t.Command("finalize"), t.Command("abort"))
	case !j.KeepNames:
		fmt.Fprintf(a.Out, "plan %s has kept no names; nothing to do\n", t.Plan.Name)
		return nil
	}
	if err := a.reaches(t, j, !j.Detached); err != nil {
		return err
	}
	if err := a.confirm(fmt.Sprintf("Take the old names of plan %s away? Clients that still use them will not find %s any more.", t.Plan.Name, t.Plan.Destination)); err != nil {
		return err
	}
	if j.Detached {
		return a.askToRemoveNames(ctx, t)
	}
	return a.process(t, pace{}, &live.Show{Plan: t.Plan, Out: a.Out, Now: a.now}).RemoveNames(ctx, plans.Command{RemoveNames: true}, func(what string) { fmt.Fprintln(a.Out, what) })
}

// askToRemoveNames declares the request: the orchestrator owns the journal and the Lease under which names
// are kept.
func (a *app) askToRemoveNames(ctx context.Context, t *reach.Target) error {
	err := t.Declare(ctx, func(j *journal.Journal, d *plans.Declaration) error {
		d.Direction, d.KeepNames = j.Leg.Direction, false
		d.Request = &plans.Request{ID: rand.String(8), RemoveNames: true, SourceGone: a.sourceGone}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "plan %s: the orchestrator in namespace %s takes its names away. To watch it: %s\n", t.Plan.Name, t.Home.Namespace, t.Command("status"))
	return nil
}

// keepNames keeps the names of a plan that no process carries out.
func (a *app) keepNames(ctx context.Context, t *reach.Target) error {
	j, err := t.Journal(ctx, false)
	switch {
	case err != nil:
		return err
	case len(t.Plan.Directories()) == 0 && !engine.OneSideOpen(t.Plan, j):
		return fmt.Errorf("plan %s leaves names alone (--names %s)", t.Plan.Name, t.Plan.Names.Mode)
	case !j.KeepNames && (j.Ended() || j.Leg.Direction == plans.Finalize) || j.Outcome == plans.Aborted:
		return fmt.Errorf("plan %s is finalized or aborted, or about to be: its names are gone", t.Plan.Name)
	}
	if err := a.reaches(t, j, true); err != nil { // also of a plan that an orchestrator carries out
		return err
	}
	if len(t.Plan.Directories()) > 0 {
		fmt.Fprint(a.Out, preview.RenderNames(t.Plan)+"\nUntil Ctrl-C this process keeps both names on both sides; they are answered while the Services of the names exist.\n")
	}
	if engine.OneSideOpen(t.Plan, j) {
		fmt.Fprint(a.Out, "Nodes of either side can be drained until Ctrl-C: the one pod that may be unavailable is one of the side that is drained.\n")
	}
	// A process that carries out the plan keeps the names too, and removes them at its end.
	return a.process(t, pace{}, &live.Show{Plan: t.Plan, Out: a.Out, Now: a.now}).Keep(ctx, j.Ended())
}
