package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the user's own kubeconfig may need any of them

	"github.com/stsmigrate/stsmigrate/cmd/internal/compare"
	"github.com/stsmigrate/stsmigrate/cmd/internal/complete"
	"github.com/stsmigrate/stsmigrate/cmd/internal/doctor"
	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/page"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/rollouts"
	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

var version string // set by the linker

// app is one run of the program.
type app struct {
	genericiooptions.IOStreams
	raw     io.Writer // standard output as it is, for an archive
	reach   reach.Flags
	signals *program.Signals
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time

	verbosity  int
	yes        bool
	skipGates  bool
	keepsNames bool
	word       plans.Assurance // what the user vouches for
	// sourceGone is the UID of the cluster that Assurance.SourceGone is about.
	sourceGone types.UID
	output     string
	dryRun     string // none, client or server
	stdin      []byte // what was read of standard input
	// answers are what the checks before the start answered. They are nil where the checks did not run.
	answers *journal.Checked
	events  string
	// stdout is standard output. Out is the same, unless programs read the events there: then a.Out is stderr.
	stdout io.Writer
	// watch knows the run of this process, if it carries a plan out.
	watch atomic.Pointer[stops.Watch]
	// restore is the view that is drawn on the terminal, if any.
	restore atomic.Pointer[live.Show]
}

// command builds the command tree. name is argv[0].
func (a *app) command(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "stsmigrate",
		Short: "Move a StatefulSet between namespaces or clusters, ordinal by ordinal",
		Long: `Move a StatefulSet between namespaces or clusters, ordinal by ordinal, with the
same volumes behind the same ordinals and never more than d ordinals down.

Plain flags (--context, --kubeconfig, --namespace) mean the source, --to-*
flags the destination; what is left out is as on the source. Plans are kept
in the destination namespace. Exit codes: 0 done, 1 error, 2 changes (plan
--detailed-exitcode), 3 refused by a check or found by verify, 4 blocked, 5 aborted,
6 not in time (wait), 7 stopped with an ordinal in flight, 130 interrupted.`,
		Version: versionText(), SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			program.LogText(a.verbosity, a.ErrOut)
			if a.stdout = a.Out; a.events == "json" {
				a.Out = a.ErrOut
			}
		},
	}
	if strings.HasPrefix(filepath.Base(name), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl stsmigrate"}
	}
	root.SetVersionTemplate(aboutText())
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	a.reach.AddFlags(root.PersistentFlags())
	root.PersistentFlags().IntVarP(&a.verbosity, "v", "v", 0, "how much is logged to stderr: 6 for every request, 7 (the most) with its headers; never what an object contains")
	updates := a.updates()
	examine := doctor.Command(doctor.Options{Reach: &a.reach, Out: a.Out, ErrOut: a.ErrOut, Now: a.now, After: a.after, Output: &a.output, Refuses: exitCode{code: exitRefused}})
	root.AddCommand(
		examine, a.planCommand(), compare.Command(a.Out, a.read), a.checkCommand(), a.applyCommand(), a.statusCommand(), a.waitCommand(), a.reportCommand(), a.getCommand(), page.Command(&a.reach, a.IOStreams, a.now),
		a.pauseCommand(), a.resumeCommand(), a.abortCommand(), a.finalizeCommand(), a.namesCommand(), a.adoptCommand(), updates.History(), updates.Undo(), updates.Rollout(), a.rbacCommand(), a.consentCommand(), a.revokeCommand(), a.forgetCommand(), a.verifyCommand(), a.recoverCommand(), a.installCommand(), a.explainCommand(), a.debugCommand(), a.schemaCommand(), a.versionCommand(),
	)
	program.Mannered(root, groups())
	complete.Wire(root, &a.reach, a.now)
	return root
}

// updates returns the commands about the update of a set.
func (a *app) updates() *rollouts.Commands {
	return &rollouts.Commands{
		Out: a.Out, Now: a.now, Yes: &a.yes, Confirm: a.confirm, Typed: a.reach.Typed, Again: a.reach.Again, Within: func(ctx context.Context) { a.reach.Ended = ctx.Done() }, DryRunFlag: a.dryRunFlag, DryRun: &a.dryRun,
		Stuck: func(why string) error { return exitCode{code: exitBlocked, message: why} },
	}
}

// groups returns the commands in the order in which users need them.
func groups() []program.Group {
	return []program.Group{
		{Title: "Move a set:", Commands: []string{"doctor", "plan", "diff", "check", "apply", "status", "get", "dashboard", "report", "pause", "resume", "abort", "finalize", "wait", "names", "forget"}},
		{Title: "When it stops:", Commands: []string{"explain", "debug", "verify", "recover"}},
		{Title: "With an orchestrator:", Commands: []string{"install", "rbac", "consent", "revoke"}},
		{Title: "Sets and slices:", Commands: []string{"adopt", "rollout", "history", "undo"}},
		{Title: "Other commands:"},
	}
}
