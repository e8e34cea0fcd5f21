package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) abortCommand() *cobra.Command {
	cmd := a.turnCommand("abort", plans.Return, "Walk a plan back: every ordinal to the source, same volumes, same budget",
		"Walk plan %s back, every ordinal to %s?", nil)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "do not ask the plan's gates on the way back")
	cmd.Flags().Int32Var(&a.word.MaxUnavailable, "max-unavailable", 0, "let so many ordinals be unavailable on the way back, if that is more than the plan allows: for a destination where something is broken")
	a.wordFlags(cmd)
	return cmd
}

func (a *app) finalizeCommand() *cobra.Command {
	var cluster string
	cmd := a.turnCommand("finalize", plans.Clean, "End a complete move: delete the emptied source set and our marks. There is no way back",
		"Finalize plan %s: delete what is left of %s? There is no way back.", func(ctx context.Context, t *target, j *plans.Journal) error {
			if !a.keepsNames {
				return nil
			}
			if a.word.SourceGone {
				return errors.New("--keep-names: the old names were answered in the source's cluster too, and that is gone")
			}
			if j.Detached {
				return nil // whoever finalizes it is asked to
			}
			return t.wantNames(ctx)
		})
	cmd.Flags().StringVar(&cluster, "source-gone", "", "do without the source's cluster, which does not exist any more: the UID of its namespace kube-system, as status -o yaml has it")
	a.wordFlags(cmd)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		a.word.SourceGone, a.sourceGone = cmd.Flags().Changed("source-gone"), types.UID(cluster)
		return nil
	}
	cmd.Flags().BoolVar(&a.keepsNames, "keep-names", false, "leave the old names answered, for clients that still use them")
	return cmd
}

// wantNames records, before the cleaning up, that the names outlive it.
func (t *target) wantNames(ctx context.Context) error {
	if len(t.plan.Directories()) == 0 {
		return fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", t.plan.Name, t.plan.Names.Mode)
	}
	return t.store.Change(ctx, t.plan, func(j *plans.Journal) error {
		if j.Leg.Course == plans.Clean && !j.KeepNames {
			return fmt.Errorf("--keep-names: plan %s is being finalized without it, and its names may be gone", t.plan.Name)
		}
		j.KeepNames = true
		return nil
	})
}

// turnCommand is a command that turns a stored plan into another direction. before, if
// any, is called once a person has agreed.
func (a *app) turnCommand(name string, course plans.Course, short, question string, before func(context.Context, *target, *plans.Journal) error) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: name + " PLAN", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			j, err := t.toTurn(cmd.Context(), a)
			if err != nil {
				return err
			}
			if j.Outcome == course.Outcome() {
				fmt.Fprintf(a.Out, "plan %s: %s; nothing to do\n", t.plan.Name, j.Outcome)
				return nil
			}
			if err := engine.Departure(t.plan, j, course); err != nil {
				return err
			}
			if err := a.confirm(fmt.Sprintf(question, t.plan.Name, t.plan.Source)); err != nil {
				return err
			}
			if before != nil {
				if err := before(cmd.Context(), t, j); err != nil {
					return err
				}
			}
			return a.carry(cmd.Context(), t, j, course, plans.Route{}, timeout)
		},
	}
	a.carryFlags(cmd, &timeout)
	return cmd
}

// toTurn reads the journal of a plan that is to go another way. An orchestrator that carries it
// out is told by its home alone; without one, this process needs both clusters.
func (t *target) toTurn(ctx context.Context, a *app) (*plans.Journal, error) {
	j, err := t.store.JournalOrNew(ctx, t.plan)
	if err != nil {
		return nil, err
	}
	if a.word.SourceGone || j.Vouched.SourceGone {
		return j, t.without(a, j)
	}
	if !j.Detached {
		err = t.connected()
	}
	return j, err
}

// without lets the plan go on without its source's cluster, whose UID the person has given. It must not answer.
func (t *target) without(a *app, j *plans.Journal) error {
	source := t.plan.Source
	switch {
	case a.word.SourceGone && a.sourceGone != source.Cluster:
		return fmt.Errorf("--source-gone %s: the source of plan %s is in the cluster %s (context %q)", a.sourceGone, t.plan.Name, source.Cluster, source.Context)
	case t.on[plans.Source] != nil:
		return fmt.Errorf("the cluster of %s answers (%s): it is not gone, and finalize has to clean it up", source, source.Cluster)
	case !j.Detached && t.lost[plans.Destination] != nil:
		return t.lost[plans.Destination]
	}
	t.on = t.on.Gone()
	return nil
}

// wordFlags are what a person can vouch for wherever a plan goes on.
func (a *app) wordFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.word.NodeGone, "node-gone", "", "vouch that a node is off, or cannot use the volumes of the ordinals in flight: nothing of them can still run or write there")
	cmd.Flags().BoolVar(&a.word.Readopt, "readopt", false, "vouch that the sets and volumes that lost the mark of the plan, or were deleted and made again, are what they were")
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause PLAN", Short: "Stop a plan where no ordinal is in flight", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := t.pause(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "plan %s pauses when the ordinal under way has arrived. To go on: %s\n", t.plan.Name, t.command("resume"))
			return nil
		},
	}
}

func (t *target) pause(ctx context.Context) error {
	underWay := func(j *plans.Journal) error {
		if j.Outcome != "" {
			return fmt.Errorf("plan %s is not under way (%s)", t.plan.Name, j.Outcome)
		}
		return nil
	}
	j, err := t.store.JournalOrNew(ctx, t.plan)
	if err != nil {
		return err
	}
	if j.Detached {
		return t.declare(ctx, func(j *plans.Journal, d *plans.Declaration) error {
			d.Paused = true
			return underWay(j)
		})
	}
	return t.store.Change(ctx, t.plan, func(j *plans.Journal) error {
		j.Paused = true
		return underWay(j)
	})
}

func (a *app) resumeCommand() *cobra.Command {
	var timeout time.Duration
	var far routeFlags
	cmd := &cobra.Command{
		Use: "resume PLAN", Short: "Go on with a paused, held or split plan, in the direction it was going", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			j, err := t.toTurn(cmd.Context(), a)
			if err != nil {
				return err
			}
			if j.Outcome != "" && j.Outcome != plans.Split {
				return fmt.Errorf("plan %s is not under way (%s)", t.plan.Name, j.Outcome)
			}
			route, err := a.goOn(cmd.Context(), t, j, &far)
			if err != nil {
				return err
			}
			return a.carry(cmd.Context(), t, j, j.Leg.Course, route, timeout)
		},
	}
	a.carryFlags(cmd, &timeout)
	a.wordFlags(cmd)
	far.add(cmd)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "go on without the gates of the step that is held, or of the next one that has any; on the way back, without all")
	return cmd
}
