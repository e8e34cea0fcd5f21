package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/findings"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) checkCommand() *cobra.Command {
	var f draft.Flags
	cmd := &cobra.Command{
		Use:   "check SET | check -f MIGRATION | check PLAN.yaml",
		Short: "Run every check of a move, and write nothing",
		Long: `Run every check that "plan" and "apply" run before the first write, and list them
all: what passes, what is worth knowing (WARN), what blocks (FAIL), and what to do.
PLAN.yaml is a file that "plan --out" wrote. Exit code 3 says that something blocks.`,
		Example: `  stsmigrate check web -n shop --to-namespace shop-new
  stsmigrate check web -n shop --context east --to-context west --ignore nodes-fit
  stsmigrate check web.yaml -o json`,
		Args: program.OptionalArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := a.report(cmd.Context(), f, args)
			if err != nil {
				return err
			}
			if err := a.show(output.Document{Value: report, Text: func() string { return findings.Table(report, a.width()) }, Names: report.Names()}); err != nil {
				return err
			}
			if len(report.Failed()) > 0 {
				return exitCode{code: exitRefused}
			}
			return nil
		},
	}
	f.AddTo(cmd)
	a.outputFlag(cmd)
	return cmd
}

// report checks the move of a set, or a plan that was made earlier.
func (a *app) report(ctx context.Context, f draft.Flags, args []string) (*preflight.Report, error) {
	if len(args) == 0 || f.File != "" || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(args[0])) {
		_, _, report, err := a.checked(ctx, f, args)
		return report, err
	}
	if err := a.knownOutput(); err != nil {
		return nil, err
	}
	if len(f.Ignore) > 0 {
		return nil, fmt.Errorf("--ignore: %s has its own list; make a new plan", args[0])
	}
	t, fresh, err := a.load(ctx, args[0], &reach.HomeFlags{})
	if err != nil {
		return nil, err
	}
	j, err := t.ToBegin(ctx, fresh)
	if err != nil {
		return nil, err
	}
	if j.Begun > 0 {
		return nil, fmt.Errorf("plan %s is under way, and is checked as it goes: see %s", t.Plan.Name, t.Command("status"))
	}
	defer a.busy()()
	return preflight.Check(ctx, t.Plan, t.On, j, a.caller(t, j))
}

// judge returns the failures as an error with the exit code of a blocked move, and nil if nothing blocks.
func (a *app) judge(r *preflight.Report) error {
	failed := r.Failed()
	if len(failed) == 0 {
		return nil
	}
	text := findings.Text(slices.Concat(failed, r.Warned()), a.width())
	return exitCode{code: exitRefused, message: fmt.Sprintf("blocked by %d failed check(s); nothing has been written:\n%s", len(failed), strings.TrimRight(text, "\n"))}
}

// warn prints the warnings, after what they are about.
func (a *app) warn(r *preflight.Report) { fmt.Fprint(a.ErrOut, findings.Warnings(r, a.width())) }

// busy says that the checks run, until done is called.
func (a *app) busy() (done func()) {
	return program.Patience{To: a.ErrOut, After: a.after}.Busy("Reading both sides and running the checks")
}

// width is that of the narrative: standard error may be on a terminal where standard output is not.
func (a *app) width() int { return program.Width(a.ErrOut) }

// caller returns for whom the checks run: an orchestrator carries out the plan that is detached.
func (a *app) caller(t *reach.Target, j *journal.Journal) check.Caller {
	by := check.Caller{Flags: t.Ends.Flags()}
	if j != nil && j.Detached {
		by.Orchestrated = a.now
	}
	return by
}
