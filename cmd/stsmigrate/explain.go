package main

import (
	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/explain"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain [REASON|CHECK]", Short: "Explain a reason or a check, without a network",
		Long: `Explain a reason for which a plan is blocked, waits or refuses a request: what happened, what is
unchanged, and what to run in which order. Reasons are the words in brackets that status, apply and
Events show. A check is explained by the name that check shows. Without an argument, both are listed.
No cluster is asked.`,
		Example: `  stsmigrate explain OrdinalsChanged
  stsmigrate explain csi-driver
  stsmigrate explain`,
		Args: program.OptionalArgument,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.knownOutput(); err != nil {
				return err
			}
			all, err := explain.All()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.print(all, all.Text)
			}
			one, err := all.Find(args[0])
			if err != nil {
				return err
			}
			return a.print(one, one.Text)
		},
	}
	a.outputFlag(cmd)
	return cmd
}

// explained returns the line that tells how to read more about a reason, or "".
func (a *app) explained(id reasons.ID) string {
	if id == "" {
		return ""
	}
	return "\nTo read more: stsmigrate explain " + string(id)
}
