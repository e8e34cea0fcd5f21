package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/plainyaml"
)

// dry returns the target of a command whose every write can be a dry run. With --dry-run=server they all are.
func (a *app) dry(t *reach.Target) *reach.Target {
	if a.dryRun == "server" {
		return t.Dry()
	}
	return t
}

// agree asks for confirmation of writes that --dry-run=server sends as dry runs, and so does not ask about.
func (a *app) agree(question string) error {
	if a.dryRun == "server" {
		return nil
	}
	return a.confirm(question)
}

// unwritten ends a command that was only tried.
func unwritten() error { return exitCode{code: exitDone, message: "dry run: nothing was written"} }

// undone ends a command that has sent dry runs.
func (a *app) undone() error {
	if a.dryRun == "server" {
		return exitCode{code: exitDone, message: "dry run: the API server accepts it, and nothing was stored"}
	}
	return nil
}

// dryRunFlag adds --dry-run, with the values that a command knows.
func (a *app) dryRunFlag(cmd *cobra.Command, known ...string) {
	usage := "what to write: " + strings.Join(known, ", ") + ". client asks nothing and stops before the first write"
	if slices.Contains(known, "server") {
		usage += "; server has the API server check what can be sent now, and store nothing"
	}
	cmd.Flags().StringVar(&a.dryRun, "dry-run", "none", usage)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = known[len(known)-1]
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)) // the flag is new
	program.Before(cmd, func() error {
		if slices.Contains(known, a.dryRun) {
			return nil
		}
		return fmt.Errorf("--dry-run=%s: expected one of %s", a.dryRun, strings.Join(known, ", "))
	})
}

// loadFile finds a plan as load does. If a file is named that is a Migration, its plan is made.
func (a *app) loadFile(ctx context.Context, file string, home *reach.HomeFlags) (t *reach.Target, fresh bool, err error) {
	if isName(file) {
		return a.load(ctx, file, home)
	}
	raw, err := a.read(file)
	if err != nil {
		return nil, false, fmt.Errorf("reading the plan: %w", err)
	}
	if file == "-" {
		a.stdin = raw // it can be read once
	}
	if kind, err := plainyaml.Kind(raw); err != nil || kind != plans.MigrationKind {
		return a.load(ctx, file, home)
	}
	if have, at, err := a.begun(ctx, file, raw, home); err != nil || have != nil {
		if err != nil {
			return nil, false, err
		}
		t, err := a.reach.InFile(ctx, have, at)
		return t, false, err
	}
	return a.fromMigration(ctx, file, home)
}

// begun returns the plan that was stored for a Migration, or nil. It returns an error if the Migration asks for something
// else by now. It is called BEFORE a plan is made: the sets of a plan under way are not those that it began with.
func (a *app) begun(ctx context.Context, file string, raw []byte, home *reach.HomeFlags) (*plans.Plan, *reach.End, error) {
	m, err := plans.DecodeMigration(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	f := draft.Flags{File: file}
	if _, err := f.Request(&a.reach, a.read, nil); err != nil {
		return nil, nil, err
	}
	asked := plans.Declaration{Spec: m.Spec}
	if asked.Destination.Patches, err = f.Patches(a.read); err != nil {
		return nil, nil, err
	}
	_, at, err := a.reach.Both()
	if err != nil {
		return nil, nil, err
	}
	if home.Detach {
		if at, err = home.Open(&a.reach, &plans.Plan{Destination: plans.Ref{Context: at.Context}}); err != nil {
			return nil, nil, err
		}
	}
	have, err := records.NewStore(at.Client, at.Namespace, cmp.Or(m.Metadata.Name, plans.NameFor(m.Spec.Source.Name))).Plan(ctx)
	if errors.As(err, new(records.ErrNoPlan)) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if field := have.Differs(&asked); field != "" {
		return nil, nil, fmt.Errorf("plan %s is stored, and the file asks for another spec.%s: a plan never changes; abort or finalize it first, or give the Migration another name", have.Name, field)
	}
	return have, at, nil
}

// fromMigration makes the plan of a Migration.
func (a *app) fromMigration(ctx context.Context, file string, home *reach.HomeFlags) (*reach.Target, bool, error) {
	p, _, report, err := a.checked(ctx, draft.Flags{File: file}, nil)
	if err == nil {
		err = a.judge(report)
	}
	if err != nil {
		return nil, false, err
	}
	at, err := home.Open(&a.reach, p)
	if err != nil {
		return nil, false, err
	}
	t, err := a.reach.InFile(ctx, p, at)
	if err == nil && home.Detach {
		err = a.reach.HandsOver(ctx, t)
	}
	return t, true, err
}
