package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/adoption"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) adoptCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "adopt SET", Short: "Turn a StatefulSet into a StatefulSetSlice where it is, or stss/SET back; no pod restarts",
		Long: `Turn a StatefulSet into a StatefulSetSlice where it is, or stss/SET into a StatefulSet.

The set is deleted without its pods, one of the other kind is made, and its controller
adopts them: pods, claims and revisions stay as they are. What was is kept in a ConfigMap
from before the first write until the end; the same command continues after an interruption.`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			a.reach.Ended = ctx.Done()
			at, set, err := a.reach.Typed(args[0])
			if err != nil {
				return err
			}
			on := at.Client
			if a.dryRun == "server" {
				on = client.NewDryRunClient(on)
			}
			return a.adopt(ctx, at, adoption.Adoption{On: on, Set: set})
		},
	}
	a.dryRunFlag(cmd, "none", "client", "server")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	program.Duration(cmd.Flags(), &timeout, "timeout", 5*time.Minute, time.Second, "how long to wait for the controllers")
	return cmd
}

// adopt carries out an adoption. A crash at any point leaves a state that the next look recognises.
func (a *app) adopt(ctx context.Context, at *reach.End, what adoption.Adoption) error {
	wake := clusters.NewChangeSignal()
	wake.WatchSets(ctx, at.Watches, at.Namespace)
	last := ""
	for {
		s, err := what.Look(ctx)
		if err != nil {
			return err
		}
		if s.Reason != "" && s.Reason != last {
			fmt.Fprintln(a.Out, s.Reason)
		}
		last = s.Reason
		switch s.Standing {
		case plans.After:
			fmt.Fprintln(a.Out, "done")
			return nil
		case plans.Conflict:
			err = exitCode{code: exitBlocked, message: "blocked: " + s.Reason}
		case plans.During:
			err = a.waitForAdoption(ctx, wake, s)
		case plans.Before:
			err = a.writeAdoption(ctx, at, what, s)
		}
		if err != nil {
			return err
		}
	}
}

func (a *app) waitForAdoption(ctx context.Context, wake *clusters.ChangeSignal, s plans.Observation) error {
	select {
	case <-wake.C():
		return nil
	case <-a.signals.Stop():
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return exitCode{code: exitBlocked, message: fmt.Sprintf("blocked: %s; the same command waits again", s.Reason)}
		}
	}
	return exitCode{code: exitInterrupted, message: "interrupted; the same command continues"}
}

// writeAdoption asks for confirmation once, and writes.
func (a *app) writeAdoption(ctx context.Context, at *reach.End, what adoption.Adoption, s plans.Observation) error {
	if err := a.agree(fmt.Sprintf("Turn %s/%s into the other kind? Its pods stay.", at.Namespace, what.Set.Name)); err != nil {
		return err
	}
	a.yes = true
	a.signals.Carries()
	err := s.Write(ctx)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: %w; the same command continues", s.Reason, err)
	}
	return a.undone() // the writes after the first one need it
}
