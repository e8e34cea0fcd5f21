package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/remarks"
	"github.com/stsmigrate/stsmigrate/plans"
)

// consentLasts is the default duration of a namespace's consent. It is long enough for a large set with a
// window at night, and short enough that a forgotten consent ends.
const consentLasts = 30 * 24 * time.Hour

func (a *app) consentCommand() *cobra.Command {
	var f sideFlags
	var lasts time.Duration
	var cluster bool
	cmd := &cobra.Command{
		Use: "consent --plan FILE", Short: "Print the ConfigMaps with which the namespaces agree that an orchestrator carries a plan out",
		Long: `Print the ConfigMaps with which every namespace that is written to agrees that an orchestrator
carries out a plan: this very plan, for a limited time. The administrator of a namespace applies the
one of that namespace. Without it the orchestrator stops before the next ordinal (see stsmigrate revoke):

  stsmigrate consent --plan web.yaml --side source | kubectl --context east apply -f -

With --cluster, print instead the VolumeConsent with which a cluster agrees to the volumes that the
orchestrator creates there, each with its disk, its mount options, its Secrets and its claim. Where
the component policies is installed, it may create no others. It is for the administrator of the cluster, who knows whose the disks are:

  stsmigrate consent --cluster --plan web.yaml --side destination | kubectl --context west apply --server-side -f -`,
		Args: program.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.perSide(cmd.Context(), &f, func(ctx context.Context, r *reach.Sides, side plans.Side) ([]client.Object, remarks.Remarks, error) {
				if cluster {
					all, err := r.ClusterConsent(ctx, side)
					return all, remarks.Remarks{}, err
				}
				all, err := r.Consents(ctx, side, a.now().Add(lasts))
				return all, remarks.OfConsent(r.Plan, side), err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&cluster, "cluster", false, "what a cluster agrees to, and not the namespaces: of which disks volumes may be made in it")
	program.Duration(cmd.Flags(), &lasts, "for", consentLasts, time.Second, "for how long the namespaces agree")
	return cmd
}
