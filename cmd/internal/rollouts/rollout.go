// Package rollouts has the commands about the update of a StatefulSet or StatefulSetSlice: what kubectl rollout does for
// the kinds that it knows.
package rollouts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/rollout"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Commands makes the commands about the update of a set.
type Commands struct {
	Out io.Writer
	Now func() time.Time
	// Yes is set by the flag that answers every question with yes. Confirm asks one, and returns an error for no.
	Yes     *bool
	Confirm func(question string) error
	// Typed connects to the cluster of the flags, and returns the set that the user has typed.
	Typed func(typed string) (*reach.End, plans.Ref, error)
	// Again returns the flags with which a later command finds a set of that cluster and namespace.
	Again func(*reach.End) string
	// Within ends the requests of Typed's client with a context, even those that have none.
	Within func(ctx context.Context)
	// DryRunFlag adds the flag --dry-run to a command, which sets DryRun.
	DryRunFlag func(cmd *cobra.Command, known ...string)
	DryRun     *string
	// Stuck returns the error for an update that does not continue by itself.
	Stuck func(why string) error
}

// Rollout returns the command that has all of them but history and undo as its own.
func (c *Commands) Rollout() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout", Short: "Watch, pause, resume, restart and undo the update of a StatefulSet, or of stss/SET",
		Long: `Watch, pause, resume, restart and undo the update of a StatefulSet, or of stss/SET, as kubectl
rollout does for the kinds that it knows.

A StatefulSet has no field by which it is paused: its partition protects all of its pods
meanwhile, and an annotation keeps the partition that it had.`,
	}
	cmd.AddCommand(c.status(), c.History(), c.pause(), c.resume(), c.restart(), c.Undo())
	return cmd
}

// rollout returns the rollout of the set that the user has typed.
func (c *Commands) rollout(typed string) (rollout.Rollout, *reach.End, error) {
	at, set, err := c.Typed(typed)
	if err != nil {
		return rollout.Rollout{}, nil, err
	}
	r := rollout.Rollout{On: at.Client, Set: set, Kubectl: at.Kubectl(set.Namespace), Again: c.Again(at)}
	if *c.DryRun == "server" {
		r.On = client.NewDryRunClient(r.On)
	}
	return r, at, nil
}

// stored says, behind what was written, that a dry run stores nothing.
func (c *Commands) stored() string {
	if *c.DryRun == "server" {
		return " (dry run: nothing was stored)"
	}
	return ""
}

func (c *Commands) pause() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause SET", Short: "Replace no pod for an update until it is resumed", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.steer(cmd.Context(), args[0], rollout.Rollout.Pause, func(flags string) string {
				return "is paused: no pod is replaced for an update until `stsmigrate rollout resume " + args[0] + flags + "`"
			}, "is paused already; nothing to do")
		},
	}
	c.DryRunFlag(cmd, "none", "client", "server")
	return cmd
}

func (c *Commands) resume() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resume SET", Short: "Resume an update that is paused", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.steer(cmd.Context(), args[0], rollout.Rollout.Resume, func(string) string { return "continues its update" }, "is not paused; nothing to do")
		},
	}
	c.DryRunFlag(cmd, "none", "client", "server")
	return cmd
}

// steer pauses or resumes the update of a set, and prints the result.
func (c *Commands) steer(ctx context.Context, typed string, do func(rollout.Rollout, context.Context) (bool, error), said func(flags string) string, before string) error {
	r, at, err := c.rollout(typed)
	if err != nil {
		return err
	}
	done := said(c.Again(at))
	if *c.DryRun == "client" {
		if _, err := r.Look(ctx); err != nil {
			return err
		}
		return c.Confirm(fmt.Sprintf("%s would be changed: it %s.", r.Set.Set(), done))
	}
	changed, err := do(r, ctx)
	if err != nil {
		return err
	}
	if !changed {
		done = before
	}
	_, err = fmt.Fprintf(c.Out, "%s %s%s\n", r.Set.Set(), done, c.stored())
	return err
}

func (c *Commands) restart() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restart SET", Short: "Replace every pod, as an update does, with the same template", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, at, err := c.rollout(args[0])
			if err != nil {
				return err
			}
			if *c.DryRun == "client" {
				if _, err := r.Look(cmd.Context()); err != nil {
					return err
				}
			}
			if *c.DryRun != "server" {
				if err := c.Confirm(fmt.Sprintf("Replace the pods of %s, as its update strategy says?", r.Set.Set())); err != nil {
					return err
				}
			}
			if err := r.Restart(cmd.Context(), c.Now()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out, "%s is restarted: its pods are replaced as its update strategy says. To watch it: stsmigrate rollout status %s%s%s\n", r.Set.Set(), args[0], c.Again(at), c.stored())
			return err
		},
	}
	c.DryRunFlag(cmd, "none", "client", "server")
	cmd.Flags().BoolVarP(c.Yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *Commands) status() *cobra.Command {
	var watch bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "status SET", Short: "Show what an update waits for, pod by pod, until it is complete",
		Long: `Show what an update waits for, pod by pod, until it is complete. The exit code is 0 then,
4 when it does not continue by itself (its progress deadline has passed, it has halted, or its
pods are replaced by hand), and 1 after --timeout.`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, timeout)
			}
			defer cancel()
			c.Within(ctx)
			r, at, err := c.rollout(args[0])
			if err != nil {
				return err
			}
			return c.watch(ctx, r, at, watch, timeout)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "say it again whenever something changes, until it has come to its end")
	program.Duration(cmd.Flags(), &timeout, "timeout", 0, 0, "how long to wait; 0 is without end")
	return cmd
}

// watch prints what has changed in an update until it is complete or stuck.
func (c *Commands) watch(ctx context.Context, r rollout.Rollout, at *reach.End, watch bool, timeout time.Duration) error {
	wake := clusters.NewChangeSignal()
	if watch {
		r.Watch(ctx, wake, at.Watches)
	}
	var said []string
	for {
		now, err := r.Look(ctx)
		switch {
		case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("the update of %s: no answer within %s", r.Set.Set(), timeout)
		case err != nil:
			return err
		case now.Stuck != "":
			c.sayNew(now.Notes, said)
			return c.Stuck(now.Stuck)
		case now.Done:
			c.sayNew(append(now.Notes, now.Summary), said)
			return nil
		}
		said = c.sayNew(slices.Concat(now.Notes, few(now.Waits)), said)
		if !watch {
			return nil
		}
		select {
		case <-wake.C():
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the update of %s was not complete within %s: %s", r.Set.Set(), timeout, now.Waits[min(1, len(now.Waits)-1)])
			}
			return ctx.Err()
		}
	}
}

// sayNew prints the lines that were not printed the last time, and returns all of them.
func (c *Commands) sayNew(lines, before []string) []string {
	for _, line := range lines {
		if !slices.Contains(before, line) {
			fmt.Fprintln(c.Out, plans.Line(line))
		}
	}
	return lines
}

// mostPods is the highest number of pods that are named at once.
const mostPods = 10

// few returns the first lines, and a line with the number of the others.
func few(lines []string) []string {
	if len(lines) <= mostPods+1 {
		return lines
	}
	return append(slices.Clone(lines[:mostPods+1]), fmt.Sprintf("and %d more", len(lines)-mostPods-1))
}
