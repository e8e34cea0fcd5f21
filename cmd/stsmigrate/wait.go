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
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/reasons"
)

func (a *app) waitCommand() *cobra.Command {
	var want []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait PLAN", Short: "Wait until a plan is in a state", Args: program.OneArgument,
		Long: `Wait until a plan is in one of the states of --for, and print that state.

It writes nothing, and the plan continues whether it is waited for or not. It ends before
the plan is there with 4 if the plan is blocked, with 5 if it was aborted, and with 6 after
--timeout.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := live.KnownStates(want); err != nil {
				return err
			}
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.wait(cmd.Context(), t, want, timeout)
		},
	}
	cmd.Flags().StringSliceVar(&want, "for", []string{"Moved"}, "the states to wait for: "+strings.Join(live.States(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(live.States(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	program.Duration(cmd.Flags(), &timeout, "timeout", 0, 0, "how long to wait; 0 for as long as it takes")
	return cmd
}

// wait returns when the plan is in one of the states, or cannot get there without the user.
func (a *app) wait(ctx context.Context, t *reach.Target, want []string, timeout time.Duration) error {
	late := make(chan struct{})
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { close(late) })
		defer timer.Stop()
	}
	last, verdict := &engine.View{State: "not read"}, live.NotYet
	err := a.source(t).Feed(ctx, late, a.complain).Follow(ctx, func(st live.Status) bool {
		if st.View.State != last.State {
			fmt.Fprintf(a.ErrOut, "%s  plan %s: %s\n", a.now().UTC().Format(time.RFC3339), t.Plan.Name, st.View.State)
		}
		last = st.View
		verdict = live.Judge(want, last)
		return verdict != live.NotYet
	})
	if err != nil && !errors.Is(err, live.ErrLeft) {
		return err
	}
	return a.waited(t, last, verdict, want, timeout)
}

// waited reports how a wait has ended.
func (a *app) waited(t *reach.Target, v *engine.View, verdict live.Verdict, want []string, timeout time.Duration) error {
	switch verdict {
	case live.Reached:
		fmt.Fprintln(a.Out, v.State)
		return nil
	case live.NeedsUser:
		return exitCode{code: exitBlocked, message: fmt.Sprintf("plan %s is blocked: %s\nNext: %s", t.Plan.Name, reasons.Tagged(v.ReasonID, v.Reason), v.Next)}
	case live.TurnedBack:
		return exitCode{code: exitAborted, message: fmt.Sprintf("plan %s was aborted", t.Plan.Name)}
	case live.Over:
		return fmt.Errorf("plan %s is %s, and will not be %s any more", t.Plan.Name, v.State, strings.Join(want, " or "))
	case live.NotYet:
	}
	return exitCode{code: exitTimeout, message: fmt.Sprintf("plan %s is %s, and not %s within %s. It continues whether it is waited for or not; to see it: %s",
		t.Plan.Name, v.State, strings.Join(want, " or "), timeout, t.Command("status"))}
}
