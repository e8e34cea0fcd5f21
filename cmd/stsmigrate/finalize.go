package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) finalizeCommand() *cobra.Command {
	var cluster string
	cmd := a.turnCommand("finalize", plans.Finalize, "End a complete move: delete the emptied source set and our marks. There is no way back",
		"Finalize plan %s: delete what is left of %s? There is no way back.", func(t *reach.Target, _ *journal.Journal) (func(*journal.Journal) error, error) {
			if !a.keepsNames {
				return nil, nil
			}
			if a.word.SourceGone {
				return nil, errors.New("--keep-names: the old names were answered in the source's cluster too, and that is gone")
			}
			return wantNames(t.Plan)
		})
	cmd.Flags().StringVar(&cluster, "source-gone", "", "do without the source's cluster, which does not exist any more: the UID of its namespace kube-system, as status -o yaml has it")
	a.wordFlags(cmd)
	first := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		a.word.SourceGone, a.sourceGone = cmd.Flags().Changed("source-gone"), types.UID(cluster)
		return first(cmd, args)
	}
	cmd.Flags().BoolVar(&a.keepsNames, "keep-names", false, "leave the old names answered, for clients that still use them")
	return cmd
}

// wantNames returns what records, BEFORE the cleanup, that the names outlive the plan.
func wantNames(p *plans.Plan) (func(*journal.Journal) error, error) {
	if len(p.Directories()) == 0 {
		return nil, fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", p.Name, p.Names.Mode)
	}
	return func(j *journal.Journal) error {
		if j.Leg.Direction == plans.Finalize && !j.KeepNames {
			return fmt.Errorf("--keep-names: plan %s is being finalized without it, and its names may be gone", p.Name)
		}
		j.KeepNames = true
		return nil
	}, nil
}
