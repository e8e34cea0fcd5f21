package rollouts

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
)

// Undo returns the command that goes back to a revision.
func (c *Commands) Undo() *cobra.Command {
	var to int64
	cmd := &cobra.Command{
		Use: "undo SET", Short: "Give a StatefulSet, or stss/SET, the pod template of an earlier revision",
		Long: `Give a StatefulSet, or stss/SET, the pod template of an earlier revision: the one before,
or --to-revision. Its controller then replaces the pods as for any other update.`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, set, err := c.history(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := h.Find(to)
			if err != nil {
				return err
			}
			if h.Is(r) {
				fmt.Fprintf(c.Out, "%s has the template of revision %d (%s); nothing to do\n", set.Set(), r.Number, r.Name)
				return nil
			}
			dry := *c.DryRun == "server"
			if !dry {
				if err := c.Confirm(fmt.Sprintf("Update %s to revision %d (%s)?", set.Set(), r.Number, r.Name)); err != nil {
					return err
				}
			}
			if err := h.Undo(cmd.Context(), r, dry); err != nil {
				return err
			}
			note := ""
			if dry {
				note = " (dry run: nothing was stored)"
			}
			fmt.Fprintf(c.Out, "%s has the template of revision %d (%s)%s\n", set.Set(), r.Number, r.Name, note)
			return nil
		},
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "the number of the revision; 0 is the one before")
	c.DryRunFlag(cmd, "none", "client", "server")
	cmd.Flags().BoolVarP(c.Yes, "yes", "y", false, "do not ask")
	return cmd
}
