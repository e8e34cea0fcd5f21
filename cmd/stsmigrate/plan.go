package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/rehearsal"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

func (a *app) planCommand() *cobra.Command {
	var f draft.Flags
	var detach bool
	var home string
	cmd := &cobra.Command{
		Use:   "plan SET | plan -f FILE",
		Short: "Say what a move would do, per ordinal, and write nothing",
		Example: `  stsmigrate plan web -n shop --to-namespace shop-new
  stsmigrate plan web -n shop --context east --to-context west --out web.yaml
  stsmigrate plan web -n shop --to-context west --patch west.yaml --out web.yaml
  stsmigrate plan web -n shop --to-namespace shop-new --show-writes --dry-run=server
  stsmigrate plan -f migration.yaml`,
		Args: program.OptionalArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(a.dryRun, a.output); err != nil {
				return err
			}
			if detach {
				f.HandTo(home, cmd.Flags().Lookup("home-context").Value.String())
			} else if cmd.Flags().Changed("home-namespace") {
				return errors.New("--home-namespace is for --detach")
			}
			return a.makePlan(cmd.Context(), f, args)
		},
	}
	f.AddTo(cmd)
	cmd.Flags().StringVar(&f.Out, "out", "", "also write the plan to this file, for apply")
	cmd.Flags().BoolVar(&f.Show.Writes, "show-writes", false, "also list every write to both API servers: of the move, and of finalize after it")
	cmd.Flags().BoolVar(&f.Show.Pod, "show-pod", false, "also show how a pod on the destination differs from that on the source: by the namespace, the cluster, admission and the patches")
	cmd.Flags().StringVar(&a.dryRun, "dry-run", "client", "none or client: only read; server: also send every write that can be sent before the move begins as a dry run, and report what the API servers refuse")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
	cmd.Flags().BoolVar(&detach, "detach", false, "an orchestrator is to carry the plan out: judge the rights of its account, and not yours")
	cmd.Flags().StringVar(&home, "home-namespace", "stsmigrate", "with --detach: the namespace of the orchestrator")
	cmd.Flags().BoolVar(&f.Detailed, "detailed-exitcode", false, "exit with 2 when the plan has something to do")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.output, "output", "o", "", output.Forms)
}

func (a *app) makePlan(ctx context.Context, f draft.Flags, args []string) error {
	p, on, report, err := a.checked(ctx, f, args)
	if err != nil {
		return err
	}
	pod := ""
	if f.Show.Pod {
		if pod, err = preflight.ShowPod(ctx, p, on, check.Caller{}); err != nil {
			return err
		}
	}
	if err := a.judge(report); err != nil {
		fmt.Fprint(a.Out, pod) // it shows why
		return err
	}
	if err := f.Save(p); err != nil {
		return err
	}
	leg, writes := journal.New(p).Leg, ""
	pace, most := draft.Pace(ctx, p, leg, on)
	if f.Show.Writes {
		writes = preview.RenderWrites(p, leg)
	}
	text := func() string {
		return preview.Render(p, leg) + report.Served() + pace + pod + writes + report.Common() + a.goOn(&f)
	}
	if err := a.show(output.Document{Value: p, Text: text, Names: []string{"plan/" + p.Name}}); err != nil {
		return err
	}
	a.warn(report)
	a.reach.WarnOfLogins(a.ErrOut, a.now().Add(most))
	if a.dryRun == "server" {
		_, home, err := a.reach.Both()
		if err != nil {
			return err
		}
		if err := a.rehearse(func() (*rehearsal.Outcome, error) {
			return rehearsal.Run(ctx, p, rehearsal.Ends{Home: home.Client, Namespace: home.Namespace, On: on}, a.now)
		}); err != nil {
			return err
		}
	}
	if f.Detailed {
		return exitCode{code: exitChanges}
	}
	return nil
}

// rehearse sends dry runs, and says on standard error what both API servers have answered. A refused write is like a
// failed check.
func (a *app) rehearse(run func() (*rehearsal.Outcome, error)) error {
	done := program.Patience{To: a.ErrOut, After: a.after}.Busy("Sending dry runs to both sides")
	outcome, err := run()
	done()
	if err != nil {
		return err
	}
	fmt.Fprint(a.ErrOut, outcome.Text(a.width()))
	if n := len(outcome.Refused()); n > 0 {
		return exitCode{code: exitRefused, message: fmt.Sprintf("%d of the writes would be refused; nothing has been written", n)}
	}
	if outcome.Held() != "" {
		return exitCode{code: exitRefused, message: "the plan would be held there, with every ordinal where it is; nothing has been written"}
	}
	return nil
}

func (a *app) goOn(f *draft.Flags) string {
	if f.Out == "" {
		return fmt.Sprintf("\nNothing has been written. Keep the plan with --out FILE, then `stsmigrate apply FILE%s`.\n", f.Handed())
	}
	return fmt.Sprintf("\nNothing has been written to the clusters. Next: %s\n", f.Next(a.reach.Kubeconfigs()))
}

// checked makes a plan and runs every check on it. It also returns the clients, which keep what has been read.
func (a *app) checked(ctx context.Context, f draft.Flags, args []string) (*plans.Plan, clusters.Clusters, *preflight.Report, error) {
	set, err := f.Request(&a.reach, a.read, args)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := a.knownOutput(); err != nil {
		return nil, nil, nil, err
	}
	if err := f.Ignorable(); err != nil {
		return nil, nil, nil, err
	}
	source, destination, err := a.reach.Both()
	if err != nil {
		return nil, nil, nil, err
	}
	patches, err := f.Patches(a.read)
	if err != nil {
		return nil, nil, nil, err
	}
	defer a.busy()()
	p, on, err := f.Draft(ctx, set, patches, source, destination, a.now())
	if err != nil {
		return nil, nil, nil, draft.ToLook(err, set)
	}
	report, err := preflight.Check(ctx, p, on, nil, check.Caller{Account: f.Account, Flags: reach.Ends{plans.Source: source, plans.Destination: destination}.Flags()})
	return p, on, report, err
}

func oneLine(s string) string { return plans.Line(s) }

func (a *app) read(file string) ([]byte, error) {
	if file == "-" && a.stdin != nil {
		return a.stdin, nil
	}
	if file == "-" {
		raw, err := io.ReadAll(a.In)
		if err != nil {
			err = fmt.Errorf("reading standard input: %w", err)
		}
		return raw, err
	}
	return os.ReadFile(file) //nolint:gosec // the person names the file
}

func (a *app) knownOutput() error { return output.Check(a.output) }

// print writes a value in the form that the user asked for.
func (a *app) print(v any, text func() string) error {
	return a.show(output.Document{Value: v, Text: text})
}

// further prints one more document of a stream.
func (a *app) further(d output.Document) error {
	if a.output == "yaml" {
		fmt.Fprintln(a.Out, "---")
	}
	return a.show(d)
}

func (a *app) show(d output.Document) error { return output.Print(a.Out, a.output, d) }
