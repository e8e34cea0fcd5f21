package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/findings"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/rehearsal"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// routeFlags limit how far a run goes.
type routeFlags struct {
	until      int32
	pauseAfter int32
	straight   bool
	detach     bool
	cmd        *cobra.Command
}

func (f *routeFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().Int32Var(&f.until, "until-ordinal", 0, "stop in a stable split: the destination has this ordinal and those above, the source keeps those below, until resume or abort")
	cmd.Flags().Int32Var(&f.pauseAfter, "pause-after", 0, "pause when so many more ordinals have arrived")
}

func (f *routeFlags) addCanary(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.straight, "no-canary-pause", false, "do not pause after the first ordinal (as with --yes)")
}

// route returns the limits that the user asked for.
func (f *routeFlags) route() (plans.Limits, error) {
	r := plans.Limits{PauseAfter: f.pauseAfter}
	if f.cmd.Flags().Changed("pause-after") && f.pauseAfter < 1 {
		return r, fmt.Errorf("--pause-after %d: expected at least 1", f.pauseAfter)
	}
	if f.cmd.Flags().Changed("until-ordinal") {
		r.Until = &f.until
	}
	return r, nil
}

// first returns the route of a plan of which nothing has begun. A user who approves the plan at the prompt
// sees the first ordinal arrive before the others leave: the canary.
func (f *routeFlags) first(yes bool) (r plans.Limits, canary bool, err error) {
	r, err = f.route()
	if canary = !yes && !f.straight && r.PauseAfter == 0; canary {
		r.PauseAfter = 1
	}
	return r, canary, err
}

// begin runs every check, asks for confirmation, and stores the plan with its journal and route. For a
// detached plan it stores the plan alone, because the route is declared to the orchestrator.
func (a *app) begin(ctx context.Context, t *reach.Target, j *journal.Journal, f *routeFlags) (plans.Limits, error) {
	route, canary, err := f.first(a.yes)
	if err != nil {
		return route, err
	}
	planned := journal.New(t.Plan)
	if err := planned.Limit(t.Plan, route); err != nil {
		return route, err
	}
	j.Detached = j.Detached || f.detach
	done := a.busy()
	on := t.On.Listed(t.Plan)
	report, err := preflight.Check(ctx, t.Plan, on, j, a.caller(t, j))
	done()
	if err != nil {
		return route, err
	}
	if err := a.judge(report); err != nil {
		return route, err
	}
	pace, most := draft.Pace(ctx, t.Plan, planned.Leg, on)
	question := preview.Render(t.Plan, planned.Leg) + pace
	switch pause := pauses(t.Plan, planned); {
	case pause == "":
	case canary:
		question += fmt.Sprintf("\nIt pauses after the first ordinal, %s, so that you can check it; --no-canary-pause continues without a pause.\n", t.Plan.Pod(plans.Source, t.Plan.End()-1))
	default:
		question += "\n" + pause
	}
	if a.yes { // the question is not shown
		a.warn(report)
	} else {
		question += findings.Warnings(report, a.width())
	}
	if !j.Detached { // otherwise the orchestrator has its own logins
		a.reach.WarnOfLogins(a.ErrOut, a.now().Add(most))
	}
	answers := report.Answers(a.now())
	planned.Timeline.Checks, a.answers = &answers, &answers
	if a.dryRun == "server" {
		fmt.Fprintln(a.Out, question)
		return route, a.dried(ctx, t, on)
	}
	if err := a.confirm(question + "\nCarry this out?"); err != nil {
		return route, err
	}
	if j.Detached {
		return route, t.Store.CreatePlan(ctx, t.Plan)
	}
	if err := t.Store.Create(ctx, t.Plan, planned); err != nil {
		return route, err
	}
	return route, take(ctx, t, route)
}

// dried sends the writes of a plan as dry runs, as far as that can be done before it begins, and ends the command.
func (a *app) dried(ctx context.Context, t *reach.Target, on clusters.Clusters) error {
	err := a.rehearse(func() (*rehearsal.Outcome, error) {
		return rehearsal.Run(ctx, t.Plan, rehearsal.Ends{Home: t.Home.Client, Namespace: t.Home.Namespace, On: on}, a.now)
	})
	return cmp.Or(err, unwritten())
}

// take records how far a Move goes.
func take(ctx context.Context, t *reach.Target, r plans.Limits) error {
	if r == (plans.Limits{}) {
		return nil
	}
	return t.Store.Change(ctx, t.Plan, func(j *journal.Journal) error { return j.Limit(t.Plan, r) })
}

// further returns the turn that clears the pause or the limit that stopped the plan, and sets new ones.
func (f *routeFlags) further(t *reach.Target, j *journal.Journal) (turn, error) {
	route, err := f.route()
	return turn{
		direction: j.Leg.Direction, limits: route,
		question: fmt.Sprintf("Continue plan %s (%s -> %s)?", t.Plan.Name, t.Plan.Source, t.Plan.Destination),
		set: func(j *journal.Journal) error {
			j.Paused = false
			if j.Outcome == plans.Split || route != (plans.Limits{}) {
				return j.Limit(t.Plan, route)
			}
			return nil
		},
	}, err
}
