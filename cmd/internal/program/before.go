package program

import "github.com/spf13/cobra"

// Before adds a check of a command's flags, which runs BEFORE the command reads anything, and before the checks that were
// added already.
func Before(cmd *cobra.Command, check func() error) {
	added := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil || added == nil {
			return err
		}
		return added(cmd, args)
	}
}
