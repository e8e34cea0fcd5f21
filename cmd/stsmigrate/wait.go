package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) waitCommand() *cobra.Command {
	var want []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait PLAN", Short: "Wait until a plan is in a state", Args: program.OneArgument,
		Long: `Wait until a plan is in one of the states of --for, and print that state.

It writes nothing, and does not influence the plan. It ends before the plan is there with 4 if
the plan is blocked, paused, split or stopped and does not continue by itself, or waits for a
cluster that its orchestrator does not know, with 7 if it was stopped with an ordinal in flight,
with 5 if it was aborted, and with 6 after --timeout.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := live.KnownStates(want)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
				a.reach.Ended = ctx.Done()
			}
			t, err := a.reach.Recorded(ctx, args[0])
			if err == nil {
				err = a.wait(ctx, t, want, timeout)
			} else if q, why := known(ctx, a, args[0], err); why != nil {
				err = why
			} else {
				err = q.wait(want)
			}
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.As(err, new(exitCode)) {
				return exitCode{code: exitTimeout, message: fmt.Sprintf("plan %s: no answer within %s", args[0], timeout)}
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&want, "for", []string{"Moved"}, "the states to wait for: "+strings.Join(live.States(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(live.States(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	program.Duration(cmd.Flags(), &timeout, "timeout", 0, 0, "how long to wait; 0 for as long as it takes")
	return cmd
}

// wait returns when the plan is in one of the states, or cannot get there without the user.
func (a *app) wait(ctx context.Context, t *reach.Target, want []plans.State, timeout time.Duration) error {
	last, verdict := live.Status{View: &engine.View{State: "not read"}}, live.NotYet
	err := a.source(t).Feed(ctx, nil, a.complain).Follow(ctx, func(st live.Status) bool {
		if st.View.State != last.View.State {
			fmt.Fprintf(a.ErrOut, "%s  plan %s: %s\n", a.now().UTC().Format(time.RFC3339), t.Plan.Name, st.View.State)
		}
		last, verdict = st, live.Judge(want, st.View)
		if verdict == live.Abandoned && !a.abandoned(ctx, t) {
			verdict = live.NotYet
		}
		return verdict != live.NotYet
	})
	if err != nil && (last.View.State == "not read" || !errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		return err
	}
	if verdict == live.Reached {
		fmt.Fprintln(a.Out, last.View.State)
		return nil
	}
	code := map[live.Verdict]int{live.Abandoned: exitBlocked, live.NeedsUser: exitBlocked, live.TurnedBack: exitAborted, live.Over: exitError, live.NotYet: exitTimeout}[verdict]
	if last.View.InFlight != nil && verdict == live.Abandoned {
		code = exitInFlight
	}
	return exitCode{code: code, message: live.Unreached(t, last, verdict, want, timeout)}
}

// abandoned reports whether certainly no process carries the plan on: that its Lease has run out is judged by two clocks,
// which may differ.
func (a *app) abandoned(ctx context.Context, t *reach.Target) bool {
	free, err := t.Store.Abandoned(ctx, clusters.Dead, a.after)
	return err == nil && free
}
