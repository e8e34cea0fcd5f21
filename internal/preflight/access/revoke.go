package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Revoke removes what an orchestrator was given on one side for one plan, with the rights of the requesting
// user, and returns what it removed, in words. The order must hold: consent goes first, so that the
// orchestrator is blocked by the missing consent and does not fail for a missing right.
func Revoke(ctx context.Context, p *plans.Plan, side plans.Side, on clusters.Clusters) (gone []string, err error) {
	for _, n := range Parties(p) {
		if n.Side != side {
			continue
		}
		less, err := n.withdraw(ctx, p, on)
		if err != nil {
			return gone, err
		}
		if less {
			gone = append(gone, fmt.Sprintf("the consent of namespace %s (ConfigMap %s)", n.Namespace, ConsentMap))
		}
	}
	// A user without the right to read what the cluster agrees to was never asked for this consent.
	switch less, err := withdrawVolumes(ctx, p, on[side], side); {
	case err != nil && !apierrors.IsForbidden(err):
		return gone, err
	case less && err == nil:
		gone = append(gone, "the volumes that the cluster agrees to (VolumeConsent "+VolumeConsent().GetName()+")")
	}
	for _, o := range Roles(p, side, types.NamespacedName{}, nil) {
		was, err := revoked(ctx, on[side], o)
		if err != nil {
			return gone, err
		}
		if was != "" {
			gone = append(gone, was)
		}
	}
	return gone, nil
}

// withdraw removes the lines of a plan from a consent, and deletes a ConfigMap that is empty then.
func (n Party) withdraw(ctx context.Context, p *plans.Plan, on clusters.Clusters) (less bool, err error) {
	have, err := n.Consent(ctx, on)
	if err != nil || have == nil {
		return false, err
	}
	next, less := n.Withdraw(p, have)
	switch {
	case !less:
		return false, nil
	case len(next.Data) == 0 && len(next.BinaryData) == 0:
		err = writes.Delete(ctx, on[n.Side], have)
	default:
		err = writes.Change(ctx, on[n.Side], have, next)
	}
	return err == nil, err
}

// revoked deletes a Role or binding of a plan and returns its name. It fails for one of that name without the
// label of the plan, which belongs to another owner, and leaves it unchanged.
func revoked(ctx context.Context, on client.Client, o client.Object) (string, error) {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	what := kind + " " + o.GetName()
	if o.GetNamespace() != "" {
		what = fmt.Sprintf("%s %s of namespace %s", kind, o.GetName(), o.GetNamespace())
	}
	label := o.GetLabels()[plans.PlanLabel]
	err := on.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", what, err)
	case o.GetLabels()[plans.PlanLabel] != label:
		return "", fmt.Errorf("%s was left alone: it does not have the label %s=%s", what, plans.PlanLabel, label)
	}
	if err := writes.DeleteOwn(ctx, on, o); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("deleting %s: %w", what, err)
	}
	return what, nil
}
