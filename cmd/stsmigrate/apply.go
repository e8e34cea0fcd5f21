package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stsmigrate/stsmigrate/cmd/internal/hints"
	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) applyCommand() *cobra.Command {
	var speed pace
	var far routeFlags
	var home reach.HomeFlags
	var file string
	cmd := &cobra.Command{
		Use:   "apply FILE|PLAN",
		Short: "Carry a plan out, or continue one that was stopped",
		Long: `Carry a plan out, or continue one that was stopped, killed or blocked.

FILE is a plan written by "plan --out"; PLAN is the name of one that was applied
before. Ctrl-C, SIGTERM and a closed terminal stop it when the ordinal under way has
arrived, a second signal after the current write, with that ordinal down, and a third
one at once; "resume" continues. A plan that is approved at the prompt pauses after its
first ordinal; --yes does not.
A plan that is being aborted or finalized turns to the destination again, after a
question, until something was deleted for that.
If FILE is a Migration, its plan is made, shown and carried out, or continued if it is stored.

With --detach an orchestrator that runs in --home-namespace carries it out, and this
command returns: status -w, pause, resume, abort and finalize work on it as ever, with
that namespace.`,
		Example: `  stsmigrate apply web.yaml
  stsmigrate apply web -n shop-new --context west
  stsmigrate apply -f migration.yaml --dry-run=server`,
		Args: func(cmd *cobra.Command, args []string) error {
			if file != "" && len(args) == 0 {
				return nil
			}
			if file != "" {
				return fmt.Errorf("the plan is named twice: by %q and by -f %s", args[0], file)
			}
			return program.OneArgument(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				args = []string{file}
			}
			if err := home.Check(&a.reach, isName(args[0])); err != nil {
				return err
			}
			far.detach = home.Detach
			t, fresh, err := a.loadFile(cmd.Context(), args[0], &home)
			if err != nil {
				return err
			}
			return a.apply(cmd.Context(), t, fresh, &far, speed)
		},
	}
	a.carryFlags(cmd, &speed)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "a Migration or a plan (- is standard input)")
	a.dryRunFlag(cmd, "none", "client", "server")
	a.wordFlags(cmd)
	far.add(cmd)
	far.addCanary(cmd)
	home.Add(cmd)
	return cmd
}

// pace is how a command carries a plan out.
type pace struct {
	timeout time.Duration // of a step
	careful *bool         // nil if it is not said
}

// isCareful reports whether this process carries the plan out carefully.
func (p pace) isCareful() bool { return p.careful != nil && *p.careful }

func (a *app) carryFlags(cmd *cobra.Command, speed *pace) {
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	live.EventsFlag(cmd, &a.events)
	program.Duration(cmd.Flags(), &speed.timeout, "step-timeout", 10*time.Minute, time.Second, "how long one step may wait without any progress before the plan is blocked; with an ordinal in flight the step is reported as overdue, and the wait continues")
	cmd.Flags().BoolFunc("careful", "carry the plan out step by step, without anything that only saves time or lets evictions through sooner; budgets stay tight while an ordinal waits to leave; an orchestrator does so until it is told --careful=false", func(said string) error {
		careful, err := strconv.ParseBool(said)
		speed.careful = &careful
		return err
	})
}

// isName reports whether an argument is the name of a plan and not a file.
func isName(what string) bool {
	if what == "-" || strings.ContainsAny(what, "/.") {
		return false
	}
	found, err := os.Stat(what)
	return err != nil || found.IsDir()
}

// load finds a plan by file or by name. fresh reports that it is not stored yet.
func (a *app) load(ctx context.Context, what string, home *reach.HomeFlags) (t *reach.Target, fresh bool, err error) {
	if isName(what) {
		if t, err = a.reach.Stored(ctx, what); err == nil && home.Detach {
			err = t.NotOfCommands(ctx)
		}
		return t, false, err
	}
	t, p, err := a.fromFile(ctx, what, home)
	if err != nil {
		return nil, false, err
	}
	if home.Detach {
		if err := a.reach.HandsOver(ctx, t); err != nil {
			return nil, false, err
		}
	}
	have, err := t.Store.Plan(ctx)
	var absent records.ErrNoPlan
	if errors.As(err, &absent) || err == nil && have.ID != p.ID {
		return t, true, nil // another plan of this name is refused when it is stored
	}
	return t, false, err
}

// fromFile reads a plan from a file and connects to its clusters.
func (a *app) fromFile(ctx context.Context, what string, home *reach.HomeFlags) (*reach.Target, *plans.Plan, error) {
	raw, err := a.read(what)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the plan: %w", err)
	}
	p, err := plans.DecodePlan(raw)
	switch {
	case err != nil && what == "-":
		return nil, nil, fmt.Errorf("standard input: %w", err)
	case err != nil && !strings.ContainsAny(what, "/."):
		return nil, nil, fmt.Errorf("%s: %w (it is a file in this directory: for the stored plan of that name, give the command in another one)", what, err)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	at, err := home.Open(&a.reach, p)
	if err != nil {
		return nil, nil, err
	}
	t, err := a.reach.InFile(ctx, p, at)
	return t, p, err
}

// apply carries out a Move. Before the first write it runs the checks and asks for confirmation. A plan that
// is already under way is not checked here.
func (a *app) apply(ctx context.Context, t *reach.Target, fresh bool, far *routeFlags, speed pace) error {
	j, err := t.ToBegin(ctx, fresh)
	if err != nil {
		return err
	}
	switch {
	case j.Outcome == plans.Split:
		return fmt.Errorf("plan %s is split, as it was asked to be: move the other ordinals with %s", t.Plan.Name, t.Command("resume"))
	case j.Outcome == plans.Aborted:
		return exitCode{code: exitAborted, message: fmt.Sprintf("plan %s was aborted; make a new plan to try again", t.Plan.Name)}
	case j.Outcome != "":
		fmt.Fprintf(a.Out, "plan %s: %s; nothing to do\n", t.Plan.Name, j.Outcome)
		return nil
	case j.Leg.Direction != plans.Move:
		return a.again(ctx, t, j, far, speed)
	case j.Paused:
		return fmt.Errorf("plan %s is paused: continue it with %s", t.Plan.Name, t.Command("resume"))
	case j.Begun > 0:
		w, err := far.further(t, j)
		if err != nil {
			return err
		}
		return a.proceed(ctx, t, j, w, speed)
	}
	if err := a.observed(ctx, t, far); err != nil {
		return err
	}
	route, err := a.begin(ctx, t, j, far)
	if err != nil {
		return err
	}
	return a.carry(ctx, t, j, turn{direction: plans.Move, limits: route}, speed)
}

var errNoTerminal = errors.New("this has to be confirmed, and standard input is not a terminal: look at what it will do, then give --yes")

// confirm asks the user before anything is written.
func (a *app) confirm(question string) error {
	switch {
	case a.dryRun != "" && a.dryRun != "none": // whatever the next write is, it is not sent
		fmt.Fprintln(a.Out, question)
		return unwritten()
	case a.yes:
		return nil
	}
	if f, ok := a.In.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return errNoTerminal
	}
	fmt.Fprintf(a.ErrOut, "%s [yes/no] ", question)
	answer := make(chan string, 1)
	go func() {
		said, _ := bufio.NewReader(a.In).ReadString('\n') // without an end of line nothing is confirmed
		answer <- said
	}()
	select {
	case <-a.signals.Ended:
		return context.Canceled
	case said := <-answer:
		if strings.TrimSpace(said) == "yes" && strings.HasSuffix(said, "\n") {
			return nil
		}
		return errors.New("not confirmed; nothing has been written")
	}
}

// process returns the runner with which this process carries out the plan.
func (a *app) process(t *reach.Target, speed pace, show *live.Show) runner.Runner {
	a.signals.Carries()
	return runner.Runner{
		Plan: t.Plan, Store: t.Store, On: t.On, Configs: t.Configs, Watches: t.Watches, Names: t.Names,
		Holder: clusters.Holder(), Dead: clusters.Dead, Now: a.now, Finish: a.signals.Finish(), Stop: a.signals.Stop(), Pace: runner.Pace{StepTimeout: speed.timeout, Careful: speed.isCareful()},
		Checks: a.answers,
		Report: show.Progress, Complain: show.Complain,
	}
}

// carry runs the plan in the given direction until it is finished, paused, held or stopped. For a detached
// plan it declares to the orchestrator the direction and how far to go.
func (a *app) carry(ctx context.Context, t *reach.Target, j *journal.Journal, w turn, speed pace) error {
	direction := w.direction
	if j.Detached {
		if err := a.ask(ctx, t, direction, w.limits, speed); err != nil || direction == plans.Move {
			return err
		}
		if direction == plans.Finalize {
			a.farewell(ctx, t, j)
		}
		fmt.Fprint(a.Out, hints.Granted(t, direction, a.word.SourceGone || j.Assurances.SourceGone)+hints.Record(t, j))
		return nil
	}
	watch := stops.New(t.Plan, j, t.Command("resume"), a.now)
	show, end, err := a.view(ctx, t, watch.Asks, a.signals.Raise)
	if err != nil {
		return err
	}
	watch.Tell = show.Stopping
	a.watch.Store(watch)
	a.signals.CarriesWaves(watch.Says)
	drawn := a.source(t).Beside(ctx, show)
	runs := a.process(t, speed, show)
	runs.Before, runs.Report = w.set, func(e *engine.Engine, p engine.Progress, err error) {
		if err == nil {
			watch.Learn(p)
		}
		show.Progress(e, p, err)
	}
	p, j, err := runs.Run(ctx, a.wanted(ctx, t, w))
	drawn()
	end()
	left := a.left(ctx, t, watch.Last(), p, err)
	show.End(p, left, err)
	if err := a.conclude(t, j, direction, p, left, err); err != nil || p.Outcome != plans.Finalized {
		return err
	}
	tellEnding(ctx, a, t, j, true) // the names are no question any more
	a.farewell(ctx, t, j)
	fmt.Fprint(a.Out, hints.Record(t, j))
	if !j.KeepNames {
		return nil
	}
	fmt.Fprintf(a.Out, "The old names are still answered, with the current addresses. To keep them current when pods restart: %s; to remove them: %s\n",
		t.Command("names -w"), t.Command("names --remove"))
	return nil
}
