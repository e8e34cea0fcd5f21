package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/docs/schemas"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema [KIND]", Short: "Print the JSON Schema of a document, without a network",
		Long: `Print the JSON Schema (draft 2020-12) of a document that stsmigrate reads or writes:
` + strings.Join(schemas.Kinds(), ", ") + `.
Editors complete and check a Migration with it. An Event is a line of --events json, and a Notification
is a message of the orchestrator. Without an argument, the kinds are listed. No cluster is asked.`,
		Example: `  stsmigrate schema Migration > migration.schema.json
  stsmigrate schema Event > event.schema.json
  stsmigrate schema`,
		Args: program.OptionalArgument, ValidArgs: schemas.Kinds(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(a.Out, strings.Join(schemas.Kinds(), "\n"))
				return err
			}
			schema, err := schemas.Of(args[0])
			if err != nil {
				return err
			}
			_, err = a.raw.Write(schema) // as it is, also for the plugin
			return err
		},
	}
}
