// Command stsmigrate moves a StatefulSet between namespaces or clusters, ordinal by ordinal. As
// kubectl-stsmigrate it is a kubectl plugin.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/cmd/internal/compare"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// The exit codes. They are part of the interface and never change their meaning.
const (
	exitDone        = 0   // done, or nothing to do
	exitError       = 1   // an error; the message describes it; of diff, the plans differ
	exitChanges     = 2   // plan --detailed-exitcode: there is something to do; of diff, an error
	exitRefused     = 3   // a check before the first write failed
	exitBlocked     = 4   // the plan needs the user
	exitAborted     = 5   // the plan was aborted
	exitTimeout     = 6   // wait --timeout: the plan is not there yet
	exitInFlight    = 7   // no process carries the plan on, and ordinals are on neither side
	exitInterrupted = 130 // stopped by a signal, with no ordinal in flight; can be resumed
)

func main() {
	cobra.EnableCommandSorting = false // they are in the order in which users need them
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(run(os.Args, streams))
}

// run is the whole program except the process around it. It returns the exit code.
func run(args []string, streams genericiooptions.IOStreams) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	raw := streams.Out
	out, errOut, last := &program.Shown{To: streams.Out}, &program.Shown{To: streams.ErrOut}, &program.Shown{To: streams.ErrOut}
	streams.Out, streams.ErrOut = out, errOut
	a := &app{IOStreams: streams, raw: raw, now: time.Now, after: time.After, reach: reach.Flags{Version: versionText(), Ended: ctx.Done()}}
	a.signals = &program.Signals{To: errOut, Ended: ctx.Done(), Exit: func() {
		if view := a.restore.Load(); view != nil {
			view.Restore()
		}
		os.Exit(a.atOnce(last))
	}}
	defer a.signals.Listen(cancel)()
	root := a.command(args[0])
	root.SetArgs(args[1:])
	if root.Annotations[cobra.CommandDisplayNameAnnotation] != "" {
		named := program.AsPlugin(root)
		errOut.Named, last.Named, out.Named = named, named, func(text string) string {
			if a.output != "" || a.events == "json" {
				return text // a document for a program
			}
			return named(text)
		}
	}
	cmd, err := root.ExecuteContextC(ctx)
	interrupted := ctx.Err() != nil
	cancel()
	a.reach.Wait()
	var code exitCode
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, context.Canceled) && interrupted:
		return exitInterrupted
	case errors.As(err, &code):
		if code.message != "" {
			fmt.Fprintln(streams.ErrOut, code.message)
		}
		return code.code
	case errors.Is(err, compare.ErrDiffer):
		return compare.Differ
	}
	fmt.Fprintln(streams.ErrOut, "error: "+sentence(err)+program.Remedy(err, "repeat the command")+a.explained(reasons.Of(err)))
	if cmd.Name() == compare.Name {
		return compare.Failed
	}
	return exitError
}

// exitCode is an error that requests a certain exit code.
type exitCode struct {
	code    int
	message string
}

func (e exitCode) Error() string { return e.message }

// sentence formats an error as one line.
func sentence(err error) string {
	return oneLine(program.Meant(err.Error()))
}
