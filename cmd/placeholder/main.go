//go:build unix

// Command placeholder is what a placeholder runs: it waits. It brings itself into images that have no program of their own
// that could wait, and tells what can be reached from where it runs. It is run in Linux containers only, reads no file of
// its pod and calls no API.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/placeholder/waiting"
)

var version string // set by the linker

const usage = `placeholder waits in the place of an ordinal of a StatefulSet that is about to move (stsmigrate).

  placeholder install DIR          put a copy of this program into a directory
  placeholder wait                 wait for a signal
  placeholder reach HOST:PORT ...  open a connection to each, write what was seen as the termination message of this
                                   container, and fail if one was not reached
  placeholder --version`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return waiting.Install(args[1])
	case len(args) == 1 && args[0] == "wait":
		wait()
		return nil
	case len(args) > 1 && args[0] == "reach":
		return reach(args[1:])
	case len(args) == 1 && args[0] == "--version":
		_, err := fmt.Fprintln(os.Stdout, "placeholder "+version)
		return err
	}
	return fmt.Errorf("%q is not understood\n\n%s", args, usage)
}

// wait returns when it is told to end. An image says with which signal, so it is any but those that tell of something else.
func wait() {
	told := make(chan os.Signal, 8)
	signal.Notify(told)
	fmt.Fprintln(os.Stderr, "waiting")
	for s := range told {
		if !slices.Contains([]os.Signal{syscall.SIGURG, syscall.SIGCHLD, syscall.SIGPIPE, syscall.SIGCONT}, s) {
			return
		}
	}
}

// reach asks the targets, and fails if one is not reached: the kubelet then runs it again.
func reach(args []string) error {
	flags := flag.NewFlagSet("reach", flag.ContinueOnError)
	patience := flags.Duration("for", 10*time.Second, "how long what is not reached is tried again")
	limit := flags.Int("limit", waiting.MaxMessage, "how long the message may be, in bytes")
	to := flags.String("to", "/dev/termination-log", "where the message is written")
	report := flags.Bool("report", false, "do not fail if something is not reached")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if n := flags.NArg(); n > waiting.MaxTargets {
		return fmt.Errorf("%d targets, expected at most %d", n, waiting.MaxTargets)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	answers := waiting.Real(time.Now).Ask(ctx, flags.Args())
	if err := os.WriteFile(*to, answers.Encode(*limit), 0o644); err != nil { //nolint:gosec // the kubelet has made it, and reads it
		return err
	}
	if answers.Reached < answers.Asked && !*report {
		return fmt.Errorf("%d of %d are not reached", answers.Asked-answers.Reached, answers.Asked)
	}
	return nil
}
