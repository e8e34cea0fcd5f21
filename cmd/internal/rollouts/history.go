package rollouts

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/rollout"
)

// History returns the command that lists revisions.
func (c *Commands) History() *cobra.Command {
	return &cobra.Command{
		Use: "history SET", Short: "List the revisions of a StatefulSet, or of stss/SET",
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, _, err := c.history(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
			fmt.Fprintln(w, "REVISION\tNAME\tPODS\tCHANGE-CAUSE")
			for _, r := range h.Revisions {
				fmt.Fprintf(w, "%d\t%s\t%d\t%s\n", r.Number, r.Name, r.Pods, r.Cause)
			}
			return w.Flush()
		},
	}
}

// history reads the revisions of the set that the user has typed.
func (c *Commands) history(ctx context.Context, typed string) (*rollout.History, plans.Ref, error) {
	at, set, err := c.Typed(typed)
	if err != nil {
		return nil, set, err
	}
	h, err := rollout.ReadHistory(ctx, at.Client, set)
	return h, set, err
}
