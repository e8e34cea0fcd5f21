// Package compare has the command that compares two plans in files.
package compare

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// Name is the name of the command.
const Name = "diff"

// The exit codes are those of kubectl diff.
const (
	Differ = 1 // the plans differ
	Failed = 2 // an error
)

// ErrDiffer says that the plans differ, which has been printed.
var ErrDiffer = errors.New("the plans differ")

// Command returns the command diff. read reads a file, or standard input for "-".
func Command(out io.Writer, read func(file string) ([]byte, error)) *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use: Name + " PLANFILE PLANFILE", Short: "Compare two plans, field by field, without a network",
		Long: `Compare two plans that "plan --out" wrote, field by field. IDs, hashes, and when and by whom the plans
were made are left out. No cluster is asked. The exit code is 0 if they are the same, 1 if they differ, and
2 after an error, as that of kubectl diff.`,
		Example: `  stsmigrate diff approved.yaml new.yaml`,
		Args:    program.TwoArguments,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := output.Check(form); err != nil {
				return err
			}
			both := make([]*plans.Plan, len(args))
			for k, file := range args {
				raw, err := read(file)
				if err != nil {
					return fmt.Errorf("reading the plan: %w", err)
				}
				if both[k], err = plans.DecodePlan(raw); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			all, err := preview.Diff(both[0], both[1])
			if err != nil {
				return err
			}
			err = output.Print(out, form, output.Document{Value: output.List("Difference", all), Text: func() string { return text(all) }, Names: names(all)})
			if err == nil && len(all) > 0 {
				return ErrDiffer
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&form, "output", "o", "", output.Forms)
	return cmd
}

func names(all []preview.Difference) []string {
	out := []string{}
	for _, d := range all {
		out = append(out, "field/"+d.Field)
	}
	return out
}

// text shows what only the first plan has after "-", and what only the second has after "+".
func text(all []preview.Difference) string {
	if len(all) == 0 {
		return "The plans are the same.\n"
	}
	var b strings.Builder
	for _, d := range all {
		if d.First != "" {
			fmt.Fprintf(&b, "- %s: %s\n", d.Field, d.First)
		}
		if d.Second != "" {
			fmt.Fprintf(&b, "+ %s: %s\n", d.Field, d.Second)
		}
	}
	return b.String()
}
