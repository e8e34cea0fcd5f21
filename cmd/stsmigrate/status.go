package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status PLAN", Short: "Show where each ordinal is and what comes next", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.knownOutput(); err != nil {
				return err
			}
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				q, err := known(cmd.Context(), a, args[0], err)
				if err != nil {
					return err
				}
				return q.status(watch)
			}
			if watch {
				return a.watchStatus(cmd.Context(), t)
			}
			v, err := a.status(cmd.Context(), t)
			if err != nil {
				return err
			}
			return stateCode(v)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "on a terminal draw it again and again, elsewhere print one line per event, until the plan has an outcome, is paused or is blocked")
	a.outputFlag(cmd)
	live.EventsFlag(cmd, &a.events)
	return cmd
}

func (a *app) status(ctx context.Context, t *reach.Target) (*engine.View, error) {
	v, err := a.source(t).Status(ctx)
	if err != nil {
		return nil, err
	}
	return v, a.show(statusOf(v))
}

// statusOf returns a status as a document.
func statusOf(v *engine.View) output.Document {
	return output.Document{Value: v, Text: func() string { return live.Table(v) }, Names: []string{"plan/" + v.Plan}}
}

// stateCode returns the exit code of a state that is not healthy, or nil.
func stateCode(v *engine.View) error {
	switch v.State {
	case plans.StateBlocked:
		return exitCode{code: exitBlocked}
	case plans.StateAborted:
		return exitCode{code: exitAborted}
	case plans.StateStoppedInFlight:
		return exitCode{code: exitInFlight}
	default:
		return nil
	}
}
