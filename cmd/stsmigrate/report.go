package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/report"
)

func (a *app) reportCommand() *cobra.Command {
	var form, out string
	cmd := &cobra.Command{
		Use: "report PLAN", Short: "Write a page that shows what a plan has done", Args: program.OneArgument,
		Long: `Write a page that shows what a plan has done: when each ordinal left and arrived, how many were away at
once, who asked for what, and what blocked it. The page is one file, and needs no network. It can be written
at any time, also while the plan is under way, and until its record is deleted.`,
		Example: `  stsmigrate report web -n shop-new
  stsmigrate report web -n shop-new --format json --out - | jq .peak`,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, known := map[string]func(*report.Report, io.Writer) error{
				"html": (*report.Report).WriteHTML, "svg": (*report.Report).WriteSVG, "json": (*report.Report).WriteJSON,
			}[form]
			if !known {
				return fmt.Errorf("--format %s: expected html, svg or json", form)
			}
			t, err := a.reach.Recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			carried, _, err := t.Store.Holder(cmd.Context(), a.now) // BEFORE the journal, as in Status
			if err != nil {
				return err
			}
			j, err := t.Store.JournalOrNew(cmd.Context(), t.Plan)
			if err != nil {
				return err
			}
			whole, untold := t.Store.Timeline(cmd.Context(), t.Plan, j)
			var page bytes.Buffer
			if err := write(report.New(t.Plan, j, whole, untold, carried != "", a.now()), &page); err != nil {
				return err
			}
			if out == "-" {
				_, err := a.Out.Write(page.Bytes())
				return err
			}
			file := out
			if file == "" {
				file = t.Plan.Name + "-report." + form
			}
			if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
				return fmt.Errorf("writing the report: %w", err)
			}
			fmt.Fprintf(a.Out, "The report of plan %s is in %s\n", t.Plan.Name, file)
			return nil
		},
	}
	cmd.Flags().StringVar(&form, "format", "html", "html, svg (only the picture) or json")
	cmd.Flags().StringVar(&out, "out", "", "the file to write, or - for standard output (default: PLAN-report.html)")
	return cmd
}
