package reach

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/stsmigrate/stsmigrate/plans"
)

// HomeFlags select whether an orchestrator carries out a plan, and where that orchestrator runs.
type HomeFlags struct {
	Detach             bool
	context, namespace string
	cmd                *cobra.Command
}

// Add adds the flags to a command.
func (f *HomeFlags) Add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().BoolVar(&f.Detach, "detach", false, "let the orchestrator carry the plan out, and return")
	cmd.Flags().StringVar(&f.namespace, "home-namespace", "stsmigrate", "with --detach, or for the name of a plan: the namespace of the orchestrator, which keeps the plan")
	cmd.Flags().StringVar(&f.context, "home-context", "", "with --detach, or for the name of a plan: the context of its cluster (default: the destination's)")
}

// Check returns an error for a flag that has no meaning. Without --detach they say where a plan that is named, and not
// read from a file, is looked for.
func (f *HomeFlags) Check(r *Flags, named bool) error {
	context, namespace := f.cmd.Flags().Changed("home-context"), f.cmd.Flags().Changed("home-namespace")
	switch {
	case f.Detach || !context && !namespace:
		return nil
	case !named && namespace:
		return errors.New("--home-namespace is for --detach, or for a plan that is stored already")
	case !named:
		return errors.New("--home-context is for --detach, or for a plan that is stored already")
	case namespace:
		r.At(f.context, f.namespace)
	default:
		r.At(f.context, "")
	}
	return nil
}

// Open connects to the orchestrator's cluster and namespace. It returns nil without --detach.
func (f *HomeFlags) Open(r *Flags, p *plans.Plan) (*End, error) {
	if !f.Detach {
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
