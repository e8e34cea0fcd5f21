package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// observed requires, BEFORE a plan is handed over, that an orchestrator is alive and can read the plan. A user
// without the right to check that is only warned.
func (a *app) observed(ctx context.Context, t *reach.Target, far *routeFlags) error {
	if !far.detach {
		return nil
	}
	if by := t.Plan.Destination.KnownBy; by != "" {
		return fmt.Errorf("plan %s knows its clusters by namespaces (%s), since the user who made it may not read namespace kube-system, and an orchestrator recognizes clusters by kube-system alone; nothing was written: make the plan again as a user who may get namespace kube-system on both sides, or leave --detach", t.Plan.Name, by)
	}
	sign, err := records.Alive(ctx, t.Home.Client, t.Home.Watches, t.Home.Namespace, versionText(), t.Plan.Requires)
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(a.ErrOut, "You may not read whether an orchestrator runs in namespace %s (%s). To check the progress of the plan: %s.\n", t.Home.Namespace, oneLine(err.Error()), t.Command("status"))
		return nil
	case errors.As(err, new(records.ErrNoOrchestrator)):
		return fmt.Errorf("%w, and no process would carry out plan %s; nothing was written: install one (`stsmigrate install orchestrator`), name the place of another with --home-namespace and --home-context, or leave --detach", err, t.Plan.Name)
	}
	if err == nil {
		err = sign.Lacks(t.Plan)
	}
	if reasons.Of(err) == reasons.ClusterUnknown {
		return fmt.Errorf("%w; nothing was written: put a kubeconfig for it into a Secret of namespace %s, with that name as the value of the label stsmigrate.dev/cluster and under the key kubeconfig, and give this command again a few seconds later; the events Refused on Secrets there tell of one that is not accepted", err, t.Home.Namespace)
	}
	return err
}

// ask declares the user's request for a plan that an orchestrator carries out, or will carry out, and says so.
func (a *app) ask(ctx context.Context, t *reach.Target, direction plans.Direction, route plans.Limits, speed pace) error {
	if err := a.declare(ctx, t, direction, route, speed); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "plan %s: the orchestrator in namespace %s carries it out. To watch it: %s\n", t.Plan.Name, t.Home.Namespace, t.Command("status -w"))
	return nil
}

// declare writes the request. A request that the orchestrator would refuse is refused here and not written.
func (a *app) declare(ctx context.Context, t *reach.Target, direction plans.Direction, route plans.Limits, speed pace) error {
	return t.Declare(ctx, func(j *journal.Journal, d *plans.Declaration) error {
		directs(d, direction, a.keepsNames, speed)
		if j.Epoch == 0 && direction == plans.Move && j.Blocked == "" && !j.Paused && route == (plans.Limits{}) {
			return nil // the plan is new
		}
		d.Request = requestOf(a, route)
		return nil
	})
}

// directs has a plan go into a direction, without a pause.
func directs(d *plans.Declaration, direction plans.Direction, keepsNames bool, speed pace) {
	d.Direction, d.Paused = direction, false
	d.KeepNames = d.KeepNames || keepsNames
	if speed.careful != nil {
		d.Careful = *speed.careful
	}
}

// requestOf returns a request that continues a plan, with what the user vouches for.
func requestOf(a *app, route plans.Limits) *plans.Request {
	return &plans.Request{
		ID: rand.String(8), Resume: true, SkipGates: a.skipGates,
		NodeGone: a.word.NodeGone, Readopt: a.word.Readopt, MaxUnavailable: a.word.MaxUnavailable, SourceGone: a.sourceGone,
		OtherTemplate: a.word.OtherTemplate, OtherCopies: a.word.OtherCopies, Ignore: a.word.Ignore, SkipPlaces: a.word.SkipPlaces, UntilOrdinal: route.Until, PauseAfter: route.PauseAfter,
	}
}
