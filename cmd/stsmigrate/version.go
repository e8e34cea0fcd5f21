package main

import (
	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, what it was made from, and the version of the plans that it writes", Args: program.NoArgument,
		RunE: func(*cobra.Command, []string) error {
			return a.print(program.Built("stsmigrate", version, plans.APIVersion), aboutText)
		},
	}
	a.outputFlag(cmd)
	return cmd
}

func versionText() string { return program.Version(version) }

func aboutText() string { return program.About("stsmigrate", version, plans.APIVersion) }
