package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// consentLasts is for how long a namespace agrees where nobody says otherwise: long enough for a large set with a
// window at night, and short enough that a consent which was forgotten ends.
const consentLasts = 30 * 24 * time.Hour

func (a *app) consentCommand() *cobra.Command {
	var f sideFlags
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "consent --plan FILE", Short: "Print the ConfigMaps with which the namespaces agree that an orchestrator carries a plan out",
		Long: `Print the ConfigMaps with which every namespace that is written to agrees that an orchestrator
carries a plan out: this very plan, until some day. Whoever is responsible for a namespace applies its
one; taking it away again makes the orchestrator stop before the next ordinal (see stsmigrate revoke):

  stsmigrate consent --plan web.yaml --side source | kubectl --context east apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lasts <= 0 {
				return fmt.Errorf("--for is %s: expected a time such as 720h", lasts)
			}
			return a.perSide(cmd.Context(), &f, func(ctx context.Context, r *reached, side plans.Side) ([]client.Object, remarks, error) {
				all, err := consents(ctx, r, side, a.now().Add(lasts))
				return all, remarks{}, err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&lasts, "for", consentLasts, "for how long the namespaces agree")
	return cmd
}

// consents are the ConfigMaps of the namespaces on one side, with what they agree to already.
func consents(ctx context.Context, r *reached, side plans.Side, until time.Time) ([]client.Object, error) {
	var out []client.Object
	for _, n := range orchestrator.Parties(r.plan) {
		if n.Side != side {
			continue
		}
		have, err := n.Consent(ctx, r.on)
		if err != nil { // what cannot be read cannot be kept either, and other plans may go by it
			return nil, err
		}
		next := n.Agree(r.plan, until, have)
		// `kubectl apply` is to keep what others gave it, and to fail where it has changed since.
		next.ObjectMeta = metav1.ObjectMeta{Namespace: next.Namespace, Name: next.Name}
		out = append(out, next)
	}
	return out, nil
}

func (a *app) revokeCommand() *cobra.Command {
	var side string
	cmd := &cobra.Command{
		Use: "revoke PLAN", Short: "Take away what an orchestrator was given for one plan: its Roles and the consent of the namespaces",
		Long: `Take away what an orchestrator was given for one plan: the Roles and bindings that stsmigrate rbac
printed, and what the namespaces agree to of it. For one side alone, with --side, by whoever is responsible for
it. A plan that is under way stops before its next ordinal.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.revoke(cmd.Context(), args[0], side) },
	}
	cmd.Flags().StringVar(&side, "side", "", "source or destination (default: both)")
	return cmd
}

func (a *app) revoke(ctx context.Context, name, side string) error {
	if err := oneSide(side); err != nil {
		return err
	}
	t, err := a.reach.recorded(ctx, name)
	if err != nil {
		return err
	}
	j, err := t.store.JournalOrNew(ctx, t.plan)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Take away the Roles and the consent of plan %s, which has ended (%s)?", name, j.Outcome)
	if !j.Ended() {
		question = fmt.Sprintf("Plan %s has not ended: it stops before its next ordinal, and cannot be aborted or finalized by the orchestrator either. Take its Roles and consent away?", name)
	}
	if err := a.confirm(question); err != nil {
		return err
	}
	var errs []error
	for _, s := range plans.Sides() {
		if side != "" && side != string(s) {
			continue
		}
		if t.on[s] == nil {
			errs = append(errs, fmt.Errorf("nothing was taken away on the %s: %w", s, t.lost[s]))
			continue
		}
		gone, err := orchestrator.Revoke(ctx, t.plan, s, t.on)
		for _, what := range gone {
			fmt.Fprintf(a.Out, "taken away on the %s: %s\n", s, what)
		}
		if len(gone) == 0 && err == nil {
			fmt.Fprintf(a.Out, "there is nothing to take away on the %s\n", s)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
