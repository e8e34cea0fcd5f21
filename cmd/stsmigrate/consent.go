package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/remarks"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight/access"
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

With --cluster, print instead the ConfigMap with which a cluster agrees to the disks that the
orchestrator creates volumes of there, each for one claim. Where the component policies is installed,
it may create no others. It is for the administrator of the cluster, who knows whose the disks are:

  stsmigrate consent --cluster --plan web.yaml --side destination | kubectl --context west apply --server-side -f -`,
		Args: program.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.perSide(cmd.Context(), &f, func(ctx context.Context, r *reach.Sides, side plans.Side) ([]client.Object, remarks.Remarks, error) {
				if cluster {
					all, err := clusterConsent(ctx, r, side)
					return all, remarks.Remarks{}, err
				}
				all, err := consents(ctx, r, side, a.now().Add(lasts))
				return all, remarks.Remarks{}, err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&cluster, "cluster", false, "what a cluster agrees to, and not the namespaces: of which disks volumes may be made in it")
	program.Duration(cmd.Flags(), &lasts, "for", consentLasts, time.Second, "for how long the namespaces agree")
	return cmd
}

// consents returns the ConfigMaps of the namespaces on one side, including their existing consents.
func consents(ctx context.Context, r *reach.Sides, side plans.Side, until time.Time) ([]client.Object, error) {
	var out []client.Object
	for _, n := range access.Parties(r.Plan) {
		if n.Side != side {
			continue
		}
		have, err := n.Consent(ctx, r.On)
		if err != nil { // consents that cannot be read cannot be kept, and other plans may need them
			return nil, err
		}
		next := n.Agree(r.Plan, until, have)
		next.ObjectMeta = asRead(next)
		out = append(out, next)
	}
	return out, nil
}

// clusterConsent returns the ConfigMap of the cluster on one side, including its existing consents. It
// returns nothing if the plan creates no volume there.
func clusterConsent(ctx context.Context, r *reach.Sides, side plans.Side) ([]client.Object, error) {
	if err := r.Lost[side.Other()]; err != nil && !r.Plan.OneCluster() {
		return nil, fmt.Errorf("which disks the %s is to agree to is known on both sides: %w", side, err)
	}
	disks, err := r.Disks(ctx, side)
	if err != nil {
		return nil, err
	}
	volumes, err := access.NewVolumes(ctx, r.Plan, r.On, side, namesOf(disks))
	if err != nil || len(volumes) == 0 {
		return nil, err
	}
	have, err := access.AgreedVolumes(ctx, r.On[side], side)
	if err != nil { // consents that cannot be read cannot be kept, and other plans may need them
		return nil, err
	}
	next, err := access.AgreeVolumes(r.Plan, volumes, have)
	if err != nil {
		return nil, err
	}
	next.ObjectMeta = asRead(next)
	return []client.Object{next}, nil
}

// asRead returns the metadata that `kubectl apply` needs for an object that also holds other plans' consents.
// The apply then leaves their labels unchanged, and is refused if the object has changed since it was read.
func asRead(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion()}
}
