package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

func (a *app) abortCommand() *cobra.Command {
	cmd := a.turnCommand("abort", plans.Return, "Walk a plan back: every ordinal to the source, same volumes, same budget",
		"Walk plan %s back, every ordinal to %s?", nil)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "do not ask the plan's gates on the way back")
	cmd.Flags().Int32Var(&a.word.MaxUnavailable, "max-unavailable", 0, "let so many ordinals be unavailable on the way back, if that is more than the plan allows: for a destination where something is broken")
	a.wordFlags(cmd)
	return cmd
}

func (a *app) finalizeCommand() *cobra.Command {
	var keep bool
	var cluster string
	cmd := a.turnCommand("finalize", plans.Clean, "End a complete move: delete the emptied source set and our marks. There is no way back",
		"Finalize plan %s: delete what is left of %s? There is no way back.", func(ctx context.Context, t *target) error {
			if !keep {
				return nil
			}
			if a.word.SourceGone {
				return errors.New("--keep-names: the old names were answered in the source's cluster too, and that is gone")
			}
			return t.wantNames(ctx)
		})
	cmd.Flags().StringVar(&cluster, "source-gone", "", "do without the source's cluster, which does not exist any more: the UID of its namespace kube-system, as `status -o yaml` has it")
	a.wordFlags(cmd)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		a.word.SourceGone, a.sourceGone = cmd.Flags().Changed("source-gone"), types.UID(cluster)
		return nil
	}
	cmd.Flags().BoolVar(&keep, "keep-names", false, "leave the old names answered, for clients that still use them")
	return cmd
}

// wantNames records, before the cleaning up, that the names outlive it.
func (t *target) wantNames(ctx context.Context) error {
	if len(t.plan.Directories()) == 0 {
		return fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", t.plan.Name, t.plan.Names.Mode)
	}
	return t.store.Change(ctx, t.plan, func(j *plans.Journal) error {
		if j.Leg.Course == plans.Clean && !j.KeepNames {
			return fmt.Errorf("--keep-names: plan %s is being finalized without it, and its names may be gone", t.plan.Name)
		}
		j.KeepNames = true
		return nil
	})
}

// turnCommand is a command that turns a stored plan into another direction. before, if
// any, is called once a person has agreed.
func (a *app) turnCommand(name string, course plans.Course, short, question string, before func(context.Context, *target) error) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: name + " PLAN", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			j, err := t.toTurn(cmd.Context(), a)
			if err != nil {
				return err
			}
			if j.Outcome == course.Outcome() {
				fmt.Fprintf(a.Out, "plan %s: %s; nothing to do\n", t.plan.Name, j.Outcome)
				return nil
			}
			if err := orchestrator.Departure(t.plan, j, course); err != nil {
				return err
			}
			if err := a.confirm(fmt.Sprintf(question, t.plan.Name, t.plan.Source)); err != nil {
				return err
			}
			if before != nil {
				if err := before(cmd.Context(), t); err != nil {
					return err
				}
			}
			return a.carry(cmd.Context(), t, course, timeout)
		},
	}
	a.carryFlags(cmd, &timeout)
	return cmd
}

// toTurn reads the journal of a plan that is to go another way. An orchestrator that carries it
// out is told by the journal alone; without one, this process needs both clusters.
func (t *target) toTurn(ctx context.Context, a *app) (*plans.Journal, error) {
	j, _, err := t.store.Journal(ctx, t.plan)
	if err != nil {
		return nil, err
	}
	if a.word.SourceGone || j.Vouched.SourceGone {
		return j, t.without(a, j)
	}
	if !j.Detached {
		err = t.connected()
	}
	return j, err
}

// without lets the plan go on without its source's cluster, whose UID the person has given. It must not answer.
func (t *target) without(a *app, j *plans.Journal) error {
	source := t.plan.Source
	switch {
	case a.word.SourceGone && a.sourceGone != source.Cluster:
		return fmt.Errorf("--source-gone %s: the source of plan %s is in the cluster %s (context %q)", a.sourceGone, t.plan.Name, source.Cluster, source.Context)
	case t.on[plans.Source] != nil:
		return fmt.Errorf("the cluster of %s answers (%s): it is not gone, and finalize has to clean it up", source, source.Cluster)
	case !j.Detached && t.lost[plans.Destination] != nil:
		return t.lost[plans.Destination]
	}
	t.on = t.on.Gone()
	return nil
}

// wordFlags are what a person can vouch for wherever a plan goes on.
func (a *app) wordFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.word.NodeGone, "node-gone", "", "vouch that a node is off, or cannot use the volumes of the ordinals in flight: nothing of them can still run or write there")
	cmd.Flags().BoolVar(&a.word.Readopt, "readopt", false, "vouch that the sets and volumes that lost the mark of the plan, or were deleted and made again, are what they were")
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause PLAN", Short: "Stop a plan where no ordinal is in flight", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := t.setPaused(cmd.Context(), true); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "plan %s pauses when the ordinal under way has arrived. To go on: %s\n", t.plan.Name, t.command("resume"))
			return nil
		},
	}
}

func (t *target) setPaused(ctx context.Context, paused bool) error {
	return t.store.Change(ctx, t.plan, func(j *plans.Journal) error {
		if j.Outcome != "" {
			return fmt.Errorf("plan %s is not under way (%s)", t.plan.Name, j.Outcome)
		}
		j.Paused = paused
		return nil
	})
}

func (a *app) resumeCommand() *cobra.Command {
	var timeout time.Duration
	var far routeFlags
	cmd := &cobra.Command{
		Use: "resume PLAN", Short: "Go on with a paused, held or split plan, in the direction it was going", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			j, err := t.toTurn(cmd.Context(), a)
			if err != nil {
				return err
			}
			if j.Outcome != "" && j.Outcome != plans.Split {
				return fmt.Errorf("plan %s is not under way (%s)", t.plan.Name, j.Outcome)
			}
			if err := a.goOn(cmd.Context(), t, j, &far); err != nil {
				return err
			}
			return a.carry(cmd.Context(), t, j.Leg.Course, timeout)
		},
	}
	a.carryFlags(cmd, &timeout)
	a.wordFlags(cmd)
	far.add(cmd)
	cmd.Flags().BoolVar(&a.skipGates, "skip-gates", false, "go on without the gates of the step that is held, or of the next one that has any; on the way back, without all")
	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status PLAN", Short: "Show where each ordinal is and what comes next", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.knownOutput(); err != nil {
				return err
			}
			t, err := a.reach.recorded(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if watch {
				return a.watch(cmd.Context(), t)
			}
			v, err := a.status(cmd.Context(), t)
			if err != nil {
				return err
			}
			return stateCode(v)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever something changes, until the plan ends")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) status(ctx context.Context, t *target) (*orchestrator.View, error) {
	v, err := t.status(ctx, a.now)
	if err != nil {
		return nil, err
	}
	return v, a.print(v, func() string { return table(v) })
}

// status reads where the plan stands, as far as that can be seen.
func (t *target) status(ctx context.Context, now func() time.Time) (*orchestrator.View, error) {
	return orchestrator.Status(ctx, t.plan, t.store, t.on, t.lost, now, t.command)
}

// stateCode is the exit code of a state that is not healthy.
func stateCode(v *orchestrator.View) error {
	switch v.State {
	case "Held":
		return exitCode{code: exitHeld}
	case string(plans.Aborted):
		return exitCode{code: exitAborted}
	}
	return nil
}

// watch prints the status whenever it has changed, until the plan comes to an
// end or nobody works on it any more.
func (a *app) watch(ctx context.Context, t *target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := orchestrator.NewWake()
	wake.Watch(ctx, t.plan, t.watches)
	wake.WatchRecords(ctx, t.home.watches, t.home.namespace)
	last := ""
	for {
		v, err := t.status(ctx, a.now)
		if err != nil {
			return err
		}
		if text := table(v); text != last {
			last = text
			if err := a.print(v, func() string { return text + "\n" }); err != nil {
				return err
			}
		}
		if v.State == string(plans.Moved) || v.State == string(plans.Split) || v.State == string(plans.Finalized) || v.State == string(plans.Aborted) {
			return stateCode(v)
		}
		select {
		case <-wake.Bell():
		case <-a.stop:
			return exitCode{code: exitInterrupted}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// table is the status as text.
func table(v *orchestrator.View) string {
	var b strings.Builder
	down := "?"
	if v.Unavailable != nil {
		down = strconv.Itoa(int(*v.Unavailable))
	}
	fmt.Fprintf(&b, "%s  %s -> %s  %s  d=%d unavailable=%s epoch=%d\n", v.Plan, v.Source, v.Destination, v.State, v.MaxUnavailable, down, v.Epoch)
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "ORDINAL\tSOURCE\tDESTINATION\tPHASE")
	for _, o := range v.Ordinals {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", o.Ordinal, o.Source, o.Destination, o.Phase)
	}
	_ = w.Flush() // into memory
	budgets := ""
	if v.BudgetsTightLongest > 0 {
		budgets = fmt.Sprintf("tight for at most %.1f s per wave", v.BudgetsTightLongest)
	}
	if v.BudgetsTightSince != nil {
		budgets = strings.Join(slices.DeleteFunc([]string{"tight since " + v.BudgetsTightSince.UTC().Format("15:04:05 MST"), budgets}, func(s string) bool { return s == "" }), ", ")
	}
	downtime := ""
	if v.Downtime != nil {
		downtime = v.Downtime.String()
	}
	for _, side := range plans.Sides() {
		if why := v.Unseen[side]; why != "" {
			fmt.Fprintf(&b, "unseen:  %s\n", why)
		}
	}
	for _, line := range []struct{ name, value string }{{"step", v.Step}, {"budgets", budgets}, {"drains", v.Drains}, {"downtime", downtime}, {"reason", v.Reason}, {"overdue", v.Overdue}, {"gates", v.Gates}, {"vouched", strings.Join(v.Vouched, "; ")}, {"process", v.Holder}, {"next", v.Next}} {
		if line.value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", line.name+":", line.value)
		}
	}
	return b.String()
}

func (a *app) getCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "get", Short: "List the plans of a namespace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.get(cmd.Context(), all) },
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the plans of all namespaces")
	a.outputFlag(cmd)
	return cmd
}

// row is one line of get.
type row struct {
	Name        string    `json:"name"`
	Namespace   string    `json:"namespace"`
	State       string    `json:"state"`
	Source      plans.Ref `json:"source"`
	Destination plans.Ref `json:"destination"`
}

func (a *app) get(ctx context.Context, all bool) error {
	if err := a.knownOutput(); err != nil {
		return err
	}
	flags := a.reach.source
	if asked(a.reach.destination) {
		a.reach.inherit()
		flags = a.reach.destination
	}
	home, err := open(flags)
	if err != nil {
		return err
	}
	namespace := home.namespace
	if all {
		namespace = ""
	}
	list, unread := orchestrator.Plans(ctx, home.client, namespace)
	rows := make([]row, 0, len(list))
	for _, s := range list {
		state, err := a.stateOf(ctx, home.client, s)
		if err != nil {
			state, unread = "?", errors.Join(unread, fmt.Errorf("plan %s/%s: %w", s.Namespace, s.Plan.Name, err))
		}
		rows = append(rows, row{s.Plan.Name, s.Namespace, state, s.Plan.Source, s.Plan.Destination})
	}
	if len(rows) == 0 && unread != nil {
		return unread
	}
	return errors.Join(a.print(rows, func() string { return rowTable(rows, namespace) }), unread)
}

func (a *app) stateOf(ctx context.Context, home client.Client, s orchestrator.Stored) (string, error) {
	store, p := orchestrator.NewStore(home, s.Namespace, s.Plan.Name), s.Plan
	j, _, err := store.Journal(ctx, p)
	if err != nil {
		return "", err
	}
	holder, err := store.Holder(ctx, a.now)
	return orchestrator.State(p, j, holder), err
}

func rowTable(rows []row, namespace string) string {
	if len(rows) == 0 {
		return fmt.Sprintf("no plans in namespace %q\n", namespace)
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSTATE\tSOURCE\tDESTINATION")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Namespace, r.Name, r.State, r.Source, r.Destination)
	}
	_ = w.Flush() // into memory
	return b.String()
}
