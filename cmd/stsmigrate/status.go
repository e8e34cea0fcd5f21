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
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/reasons"
	"github.com/stsmigrate/stsmigrate/records"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status PLAN", Short: "Show where each ordinal is and what comes next", Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.knownOutput(); err != nil {
				return err
			}
			t, err := a.reach.Recorded(cmd.Context(), args[0])
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

func (a *app) status(ctx context.Context, t *reach.Target) (*engine.View, error) {
	v, err := readStatus(ctx, t, a.now)
	if err != nil {
		return nil, err
	}
	return v, a.show(output.Document{Value: v, Text: func() string { return table(v) }, Names: []string{"plan/" + v.Plan}})
}

// readStatus reads the state of the plan, as far as it is visible.
func readStatus(ctx context.Context, t *reach.Target, now func() time.Time) (*engine.View, error) {
	v, err := engine.Status(ctx, t.Plan, t.Store, t.On, t.Lost, now, t.Command)
	if err != nil || !v.Unattended {
		return v, err
	}
	var none records.ErrNoOrchestrator
	switch _, err := records.Alive(ctx, t.Home.Client, t.Home.Watches, t.Home.Namespace, versionText()); {
	case err == nil:
	case errors.As(err, &none):
		v.Orchestrator, v.Next = err.Error(), "start an orchestrator there, which resumes it: `kubectl --context "+t.Home.Context+" -n "+t.Home.Namespace+" get pods` says why none is ready"
	case errors.As(err, new(records.ErrOtherVersion)):
		v.Orchestrator, v.Next = err.Error(), ""
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		v.Orchestrator = "the Leases of the orchestrators cannot be read: " + err.Error()
	}
	return v, nil
}

// stateCode returns the exit code of a state that is not healthy, or nil.
func stateCode(v *engine.View) error {
	switch v.State {
	case "Blocked":
		return exitCode{code: exitBlocked}
	case string(plans.Aborted):
		return exitCode{code: exitAborted}
	}
	return nil
}

// watch prints the status whenever it has changed, until the plan has an outcome or the command is stopped.
func (a *app) watch(ctx context.Context, t *reach.Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := clusters.NewChangeSignal()
	wake.Watch(ctx, t.Plan, t.Watches)
	wake.WatchRecords(ctx, t.Home.Watches, t.Home.Namespace)
	last := ""
	for {
		v, err := readStatus(ctx, t, a.now)
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
		case <-wake.C():
		case <-a.stop:
			return exitCode{code: exitInterrupted}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// table formats the status as text.
func table(v *engine.View) string {
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
	for _, line := range []struct{ name, value string }{{"step", v.Step}, {"budgets", budgets}, {"drains", v.Drains}, {"names", v.Names}, {"downtime", downtime}, {"reason", reasons.Tagged(v.ReasonID, v.Reason)}, {"overdue", reasons.Tagged(v.OverdueID, v.Overdue)}, {"gates", v.Gates}, {"vouched", strings.Join(v.Assurances, "; ")}, {"process", v.Holder}, {"orchestrator", oneLine(v.Orchestrator)}, {"next", v.Next}} {
		if line.value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", line.name+":", line.value)
		}
	}
	return b.String()
}
