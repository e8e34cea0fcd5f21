package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) finalizeCommand() *cobra.Command {
	cmd := a.turnCommand("finalize", plans.Finalize, "End a complete move: delete the emptied source set and our marks. There is no way back",
		"Finalize plan %s: delete what is left of %s? There is no way back.", func(t *reach.Target, _ *journal.Journal) (func(*journal.Journal) error, error) {
			if !a.keepsNames {
				return nil, nil
			}
			if a.word.SourceGone {
				return nil, errors.New("--keep-names: the old names were answered in the source's cluster too, and that is gone")
			}
			return func(j *journal.Journal) error { return requests.KeepNames(t.Plan, j) }, nil
		})
	a.sourceGoneFlag(cmd)
	a.wordFlags(cmd)
	cmd.Flags().BoolVar(&a.keepsNames, "keep-names", false, "leave the old names answered, for clients that still use them")
	return cmd
}
