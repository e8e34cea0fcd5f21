package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/findings"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) finalizeCommand() *cobra.Command {
	var cmd *cobra.Command
	cmd = a.turnCommand("finalize", plans.Finalize, "End a complete move: delete the emptied source set and our marks. There is no way back",
		"Finalize plan %s: delete what is left of %s? There is no way back.", func(t *reach.Target, j *journal.Journal) (func(*journal.Journal) error, error) {
			if !a.keepsNames {
				tellEnding(cmd.Context(), a, t, j, j.KeepNames)
				return nil, nil
			}
			if a.word.SourceGone {
				return nil, errors.New("--keep-names: the old names were answered in the source's cluster too, and that is gone")
			}
			tellEnding(cmd.Context(), a, t, j, true)
			return func(j *journal.Journal) error { return requests.KeepNames(t.Plan, j) }, nil
		})
	a.sourceGoneFlag(cmd)
	a.wordFlags(cmd)
	cmd.Flags().BoolVar(&a.keepsNames, "keep-names", false, "leave the old names answered, for clients that still use them")
	return cmd
}

// tellEnding says what stops with the end of a move, and who would make the source set again: before the question, and once
// more after it. It is no reason against the end, and neither is a failure to look.
func tellEnding(ctx context.Context, a *app, t *reach.Target, j *journal.Journal, namesKept bool) {
	if a.word.SourceGone || j.Assurances.SourceGone {
		return // a cluster that is gone makes no set
	}
	var found []check.Finding
	err := t.Connected()
	if err == nil {
		found, err = preflight.Ending(ctx, t.Plan, t.On, a.caller(t, j), namesKept)
	}
	if err != nil {
		fmt.Fprintf(a.ErrOut, "What the end of the move leaves to others could not be looked at: %s\n", oneLine(err.Error()))
	}
	if len(found) > 0 {
		fmt.Fprintf(a.Out, "What the end of the move leaves to you:\n%s", findings.Text(found, a.width()))
	}
}
