package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/records"
)

// homeFlags select whether an orchestrator carries out a plan, and where that orchestrator runs.
type homeFlags struct {
	detach             bool
	context, namespace string
	cmd                *cobra.Command
}

func (f *homeFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().BoolVar(&f.detach, "detach", false, "let the orchestrator carry the plan out, and return")
	cmd.Flags().StringVar(&f.namespace, "home-namespace", "stsmigrate", "with --detach: the namespace of the orchestrator, which keeps the plan")
	cmd.Flags().StringVar(&f.context, "home-context", "", "with --detach: the context of its cluster (default: the destination's)")
}

func (f *homeFlags) check() error {
	for _, name := range []string{"home-namespace", "home-context"} {
		if f.cmd.Flags().Changed(name) && !f.detach {
			return fmt.Errorf("--%s is for --detach", name)
		}
	}
	return nil
}

// open connects to the orchestrator's cluster and namespace. It returns nil without --detach.
func (f *homeFlags) open(r *reach, p *plans.Plan) (*end, error) {
	if !f.detach {
		return nil, nil
	}
	flags := genericclioptions.NewConfigFlags(false)
	*flags.KubeConfig = *r.destination.KubeConfig
	if *flags.KubeConfig == "" {
		*flags.KubeConfig = *r.source.KubeConfig
	}
	*flags.Context, *flags.Namespace = f.context, f.namespace
	if f.context == "" {
		*flags.Context = p.Destination.Context
	}
	if *flags.Context == "" {
		*flags.Context = *r.destination.Context
	}
	home, err := r.open(flags)
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	return home, nil
}

// elsewhere returns the same plan with the home that commands would use: the destination's namespace.
func (r *reach) elsewhere(t *target) *target {
	there := *t
	there.home = &end{client: t.on[plans.Destination], namespace: t.plan.Destination.Namespace, context: t.plan.Destination.Context}
	there.store = records.NewStore(there.home.client, there.home.namespace, t.plan.Name)
	there.flags = r.again(there.home)
	return &there
}

// notOfCommands refuses to detach a plan that commands carry out: two records of it would not know of each
// other.
func (t *target) notOfCommands(ctx context.Context) error {
	have, err := t.store.Plan(ctx)
	switch {
	case errors.As(err, new(records.ErrNoPlan)), apierrors.IsForbidden(err), err == nil && have.ID != t.plan.ID:
		return nil // without the right to read there, the user has stored no plan there either
	case err != nil:
		return err
	}
	j, err := t.store.JournalOrNew(ctx, t.plan)
	if errors.As(err, new(records.ErrNoJournal)) { // nothing has begun
		return nil
	}
	if err != nil || j.Detached {
		return err
	}
	return fmt.Errorf("plan %s is stored in namespace %s, where it is carried out by commands, and not by an orchestrator: omit --detach and resume it with %s, or abort it with %s and make a new plan",
		t.plan.Name, t.home.namespace, t.command("apply"), t.command("abort"))
}

// heard requires, BEFORE a plan is handed over, that an orchestrator is alive and can read the plan. A user
// without the right to check that is only warned.
func (a *app) observed(ctx context.Context, t *target, far *routeFlags) error {
	if !far.detach {
		return nil
	}
	_, err := records.Alive(ctx, t.home.client, t.home.watches, t.home.namespace, versionText())
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(a.ErrOut, "You may not read whether an orchestrator runs in namespace %s (%s). To check the progress of the plan: %s.\n", t.home.namespace, oneLine(err.Error()), t.command("status"))
		return nil
	case errors.As(err, new(records.ErrNoOrchestrator)):
		return fmt.Errorf("%w, and no process would carry out plan %s; nothing was written: install one (`stsmigrate install orchestrator`), name the place of another with --home-namespace and --home-context, or leave --detach", err, t.plan.Name)
	}
	return err
}

// handsOver refuses a plan that commands carry out, and a home where no request can be declared to an
// orchestrator.
func (r *reach) handsOver(ctx context.Context, t *target) error {
	if err := r.elsewhere(t).notOfCommands(ctx); err != nil {
		return err
	}
	_, err := records.ReadDeclared(ctx, t.home.client, t.home.namespace, t.plan.Name)
	return err
}

// ask declares the user's request for a plan that an orchestrator carries out, or will carry out. A request
// that the orchestrator would refuse is refused here and not written.
func (a *app) ask(ctx context.Context, t *target, direction plans.Direction, route plans.Limits) error {
	err := t.declare(ctx, func(j *journal.Journal, d *plans.Declaration) error {
		d.Direction, d.Paused = direction, false
		d.KeepNames = d.KeepNames || a.keepsNames
		if j.Epoch == 0 && direction == plans.Move && j.Blocked == "" && !j.Paused && route == (plans.Limits{}) {
			return nil // the plan is new
		}
		d.Request = &plans.Request{
			ID: rand.String(8), Resume: true, SkipGates: a.skipGates,
			NodeGone: a.word.NodeGone, Readopt: a.word.Readopt, MaxUnavailable: a.word.MaxUnavailable, SourceGone: a.sourceGone,
			UntilOrdinal: route.Until, PauseAfter: route.PauseAfter,
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "plan %s: the orchestrator in namespace %s carries it out. To watch it: %s\n", t.plan.Name, t.home.namespace, t.command("status -w"))
	return nil
}

// declare changes the declaration of a plan, given its journal as it is at that moment.
func (t *target) declare(ctx context.Context, change func(*journal.Journal, *plans.Declaration) error) error {
	return records.Declare(ctx, t.home.client, t.home.namespace, t.plan, func(d *plans.Declaration) error {
		j, err := t.journal(ctx, false)
		if err != nil {
			return err
		}
		j.Detached = true
		if err := change(j, d); err != nil {
			return err
		}
		if asked := engine.ReadRequest(t.plan, j, d); asked.Refuse != nil {
			return errors.New(asked.Refused)
		}
		return d.Validate()
	})
}
