package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/bundle"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
)

func (a *app) debugCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "debug PLAN", Short: "Write one archive about a plan, without secrets, for those who help",
		Long: `Write one archive (tar.gz) about a plan: plan, journal, Events, the objects of the plan (sets, pods,
claims, volumes, attachments, budgets, Leases), versions, and the answers of the checks. No Secret
is read, and values of environment variables, commands, headers and annotations of other programs
are left out. Names stay: look through it before you send it. What cannot be read is listed in it.
Nothing is written to a cluster.`,
		Example: `  stsmigrate debug web
  stsmigrate debug web --file - | tar -tz`,
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return a.debug(cmd.Context(), args[0], file) },
	}
	cmd.Flags().StringVar(&file, "file", "", "the archive to write, which must not exist; - for standard output (default: stsmigrate-debug-PLAN.tar.gz)")
	return cmd
}

func (a *app) debug(ctx context.Context, name, file string) error {
	t, err := a.reach.Recorded(ctx, name)
	if err != nil {
		return err
	}
	folder := "stsmigrate-debug-" + t.Plan.Name
	file = cmp.Or(file, folder+".tar.gz")
	archive := bundle.Collect(ctx, t, aboutText(), a.now)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if file == "-" {
		return archive.Write(a.raw, folder, a.now())
	}
	if err := archive.Save(file, folder, a.now()); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s was written, without secrets. Look through it before you send it: tar -tzf %s\n", file, file)
	return nil
}
