package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/stsmigrate/stsmigrate/plans"
)

// homeFlags say that an orchestrator shall carry a plan out, and where it runs.
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

// open connects to where the orchestrator runs; nil without one.
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
	home, err := open(flags)
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	return home, nil
}

// ask records a wish for a plan that an orchestrator carries out.
func (a *app) ask(ctx context.Context, t *target, w plans.Wish) error {
	err := t.store.Change(ctx, t.plan, func(j *plans.Journal) error {
		if !j.Detached {
			return errors.New("it is not carried out by an orchestrator any more; say the command again")
		}
		if j.Epoch == 0 && w.Course == plans.Move && j.Wish == nil && j.Held == "" && !j.Paused {
			return nil // it is new
		}
		j.Ask(w)
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "plan %s: the orchestrator in namespace %s carries it out. To watch it: %s\n", t.plan.Name, t.home.namespace, t.command("status -w"))
	return nil
}
