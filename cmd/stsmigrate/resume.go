package main

import (
	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) resumeCommand() *cobra.Command {
	var speed pace
	var far routeFlags
	cmd := &cobra.Command{
		Use: "resume PLAN", Short: "Continue a plan that was stopped, paused, blocked or split, in its direction", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				q, err := known(cmd.Context(), a, args[0], err)
				if err != nil {
					return err
				}
				route, err := far.route()
				if err != nil {
					return err
				}
				return q.turn(cmd.Context(), plans.Move, route, speed)
			}
			j, err := a.toTurn(cmd.Context(), t, plans.Move)
			if err != nil {
				return err
			}
			if j.Outcome != "" && j.Outcome != plans.Split || j.Untouched() && !j.Detached && !j.Paused && j.Blocked == "" {
				if err := t.Connected(); err != nil {
					return err
				}
				return a.apply(cmd.Context(), t, false, &far, speed) // nothing to do, or every check first
			}
			w, err := far.further(t, j)
			if err != nil {
				return err
			}
			return a.proceed(cmd.Context(), t, j, w, speed)
		},
	}
	a.carryFlags(cmd, &speed)
	a.dryRunFlag(cmd, "none", "client", "server")
	a.wordFlags(cmd)
	a.leaveFlags(cmd)
	far.add(cmd)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "continue without the gates of the step that is blocked, or of the next one that has any; during an abort, without all")
	cmd.Flags().BoolVar(&a.word.SkipPlaces, "skip-places", false, "continue without the proof that the place of the ordinal that waits is there; during an abort, of every ordinal")
	return cmd
}
