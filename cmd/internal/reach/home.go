package reach

import (
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
	cmd.Flags().StringVar(&f.namespace, "home-namespace", "stsmigrate", "with --detach: the namespace of the orchestrator, which keeps the plan")
	cmd.Flags().StringVar(&f.context, "home-context", "", "with --detach: the context of its cluster (default: the destination's)")
}

// Check returns an error for a flag that has no meaning without --detach.
func (f *HomeFlags) Check() error {
	for _, name := range []string{"home-namespace", "home-context"} {
		if f.cmd.Flags().Changed(name) && !f.Detach {
			return fmt.Errorf("--%s is for --detach", name)
		}
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
