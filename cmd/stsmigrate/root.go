package main

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the user's own kubeconfig may need any of them

	"github.com/stsmigrate/stsmigrate/cmd/internal/page"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/plans"
)

var version string // set by the linker

// app is one run of the program.
type app struct {
	genericiooptions.IOStreams
	reach reach.Flags
	stop  <-chan struct{}
	reads atomic.Bool // the command never writes to a cluster
	now   func() time.Time

	verbosity  int
	yes        bool
	skipGates  bool
	keepsNames bool
	word       plans.Assurance // what the user vouches for
	// sourceGone is the UID of the cluster that Assurance.SourceGone is about.
	sourceGone types.UID
	output     string
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
--detailed-exitcode), 3 refused by a check or found by verify, 4 blocked, 5 aborted, 130
interrupted.`,
		Version: versionText(), SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			program.LogText(a.verbosity, a.ErrOut)
			a.reads.Store(slices.Contains(readers(), cmd.Name()))
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
	root.AddCommand(
		a.checkCommand(), a.planCommand(), a.applyCommand(), a.statusCommand(), a.getCommand(), page.Command(&a.reach, a.IOStreams, a.now),
		a.pauseCommand(), a.resumeCommand(), a.abortCommand(), a.finalizeCommand(), a.namesCommand(), a.adoptCommand(), a.historyCommand(), a.undoCommand(), a.rolloutCommand(), a.rbacCommand(), a.consentCommand(), a.revokeCommand(), a.forgetCommand(), a.verifyCommand(), a.recoverCommand(), a.installCommand(), a.versionCommand(),
	)
	return root
}

// readers lists the commands that write to no cluster, whatever their flags. On a signal they have nothing to
// finish.
func readers() []string {
	return []string{"check", "plan", "status", "verify", "get", "dashboard", "history", "rbac", "consent", "version"}
}
