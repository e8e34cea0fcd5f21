package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Service warns where pods have no names, or where only one side publishes pods that are not ready: a pod
// that waits for its peers before it becomes ready would wait for ever. It also warns where another cluster
// publishes addresses of other families.
func Service(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	name := i.Now.Set.Spec.ServiceName
	if name == "" {
		return nil, nil // a set that never had names
	}
	d := plans.Dependency{Kind: "Service", Name: name}
	from, to, err := i.OnBoth(ctx, d)
	if err != nil {
		return nil, err
	}
	a, _ := from.(*corev1.Service)
	b, _ := to.(*corev1.Service)
	object := fmt.Sprintf("Service %s/%s on the source", i.Plan.Source.Namespace, name)
	switch {
	case a == nil:
		return []check.Finding{{Level: check.Warn, Object: object, Saw: "it does not exist", Want: "the governing Service, which gives pods their names", Remedy: "make it, if the pods look one another up"}}, nil
	case a.Spec.ClusterIP != corev1.ClusterIPNone:
		return []check.Finding{{Level: check.Warn, Object: object, Saw: "it is not headless", Want: "clusterIP None, or pods have no names", Remedy: "make it headless, if the pods look one another up"}}, nil
	case b != nil && a.Spec.PublishNotReadyAddresses != b.Spec.PublishNotReadyAddresses:
		return []check.Finding{{
			Level: check.Warn, Object: fmt.Sprintf("Service %s/%s on the destination", i.Plan.Destination.Namespace, name),
			Saw:  fmt.Sprintf("publishNotReadyAddresses is %t", b.Spec.PublishNotReadyAddresses),
			Want: fmt.Sprintf("%t, as on the source", a.Spec.PublishNotReadyAddresses), Remedy: "make them equal: a pod that has to find its peers before it is ready would wait for good",
		}}, nil
	}
	return otherFamilies(ctx, i, d, a, b)
}

// otherFamilies warns where the addresses of the pods are of other IP families in another cluster: pods that listen
// on one family cannot be reached by the other. Nothing but a dry run shows which families it would choose.
func otherFamilies(ctx context.Context, i check.Inspection, d plans.Dependency, from, to *corev1.Service) ([]check.Finding, error) {
	copied := slices.ContainsFunc(i.Plan.Dependencies, func(o plans.Dependency) bool { return o.Kind == d.Kind && o.Name == d.Name && o.Required == "" })
	if i.Plan.OneCluster() || to == nil && !copied {
		return nil, nil
	}
	verb := "it publishes"
	if to == nil {
		verb = "its copy would publish"
		to, _ = copies.Replica(i.Plan, from).(*corev1.Service)
		err := writes.Copy(ctx, i.On[plans.Source], from, i.On[plans.Destination], to, client.DryRunAll)
		if apierrors.IsNotFound(err) || apierrors.IsInternalError(err) || check.Refused(err) {
			return nil, nil // nothing was shown; other checks report a missing namespace or right
		}
		if err != nil {
			return nil, fmt.Errorf("trying %s in namespace %s of the destination (dry run): %w", d, i.Plan.Destination.Namespace, err)
		}
	}
	if len(from.Spec.IPFamilies) == 0 || len(to.Spec.IPFamilies) == 0 || slices.Equal(from.Spec.IPFamilies, to.Spec.IPFamilies) {
		return nil, nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: fmt.Sprintf("Service %s/%s on the destination", i.Plan.Destination.Namespace, d.Name),
		Saw: verb + " addresses of " + joined(to.Spec.IPFamilies), Want: joined(from.Spec.IPFamilies) + ", as on the source",
		Remedy: "if the pods cannot use these, and the cluster has the others: make the Service there with these ipFamilies and this ipFamilyPolicy before the move",
	}}, nil
}

func joined(families []corev1.IPFamily) string {
	var out []string
	for _, f := range families {
		out = append(out, string(f))
	}
	return strings.Join(out, " and ")
}
