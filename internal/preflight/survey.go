package preflight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// survey reads the inputs of a plan.
type survey struct{ clusters.Pair }

// Survey reads the inputs of a plan. maxUnavailable is what the user requests, nil for the budget of the
// source's PodDisruptionBudget. names is the requested mode, "" for Bridge wherever there is a name to
// bridge. The patches determine the pods of the destination.
func Survey(ctx context.Context, on clusters.Clusters, source, destination plans.Ref, maxUnavailable *intstr.IntOrString, names plans.NameMode, patches []plans.Patch) (build.Inputs, error) {
	in := build.Inputs{Source: source, Destination: destination, Patches: patches}
	w := survey{clusters.Pair{Plan: &plans.Plan{Source: source, Destination: destination}, On: on}}
	var err error
	if in.Set, err = w.Set(ctx, plans.Source); err != nil {
		return in, err
	}
	if in.Set == nil {
		return in, fmt.Errorf("%s does not exist: check name, --namespace and --context", source.Set())
	}
	if in.Existing, err = w.Set(ctx, plans.Destination); err != nil {
		return in, err
	}
	if in.Names, err = w.naming(ctx, in.Set.Spec.ServiceName, names); err != nil {
		return in, err
	}
	if in.Shared, err = check.Shared(ctx, w.Pair, in.Set); err != nil {
		return in, err
	}
	if in.Versions, err = w.versions(ctx); err != nil {
		return in, err
	}
	err = w.budgets(ctx, &in, maxUnavailable)
	return in, err
}

// naming determines how pods will be found. Only a headless Service gives pods names.
func (w survey) naming(ctx context.Context, service string, asked plans.NameMode) (plans.Names, error) {
	switch asked {
	case plans.NoNames:
		return plans.Names{Mode: plans.NoNames}, nil
	case plans.MCS:
		if w.Plan.OneCluster() || w.Plan.Source.Namespace != w.Plan.Destination.Namespace {
			return plans.Names{}, fmt.Errorf("--names mcs: Multi-Cluster Services join Services of one namespace name in two clusters, and this move is from %s to %s", w.Plan.Source, w.Plan.Destination)
		}
	case "", plans.Bridge:
	default:
		return plans.Names{}, fmt.Errorf("--names %s: expected %s, %s or %s", asked, plans.Bridge, plans.MCS, plans.NoNames)
	}
	why := "the set names no governing Service"
	if service != "" {
		o, err := w.Dependency(ctx, plans.Source, plans.Dependency{Kind: "Service", Name: service})
		if err != nil {
			return plans.Names{}, err
		}
		s, ok := o.(*corev1.Service)
		switch {
		case !ok:
			why = fmt.Sprintf("its governing Service %s does not exist", service)
		case s.Spec.ClusterIP != corev1.ClusterIPNone:
			why = fmt.Sprintf("its governing Service %s is not headless", service)
		default:
			return w.named(ctx, asked, service)
		}
	}
	if asked != "" {
		return plans.Names{}, fmt.Errorf("--names %s: %s has no names to keep: %s; give --names none", asked, w.Plan.Source, why)
	}
	return plans.Names{Mode: plans.NoNames}, nil
}

func (w survey) named(ctx context.Context, asked plans.NameMode, service string) (n plans.Names, err error) {
	n = plans.Names{Mode: plans.Bridge, Service: service}
	if asked != plans.MCS {
		return n, nil
	}
	n.Mode = plans.MCS
	if n.SourceID, err = w.clusterID(ctx, plans.Source); err == nil {
		n.DestinationID, err = w.clusterID(ctx, plans.Destination)
	}
	return n, err
}

// clusterID returns the name that a cluster gives itself (KEP-2149), or "" where the cluster has none or does
// not let the user read it. It is for display only.
func (w survey) clusterID(ctx context.Context, side plans.Side) (string, error) {
	property := &unstructured.Unstructured{}
	property.SetGroupVersionKind(schema.GroupVersionKind{Group: "about.k8s.io", Version: "v1alpha1", Kind: "ClusterProperty"})
	err := w.On[side].Get(ctx, client.ObjectKey{Name: "cluster.clusterset.k8s.io"}, property)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the name of the %s's cluster: %w", side, err)
	}
	id, _, err := unstructured.NestedString(property.Object, "spec", "value")
	return id, err
}

// allowance returns d: the requested number; if none is requested, the source's budget, or 1 where the source
// has no budget. It fails where the budget allows no pod to be unavailable, or fewer than requested.
func allowance(in build.Inputs, asked int32) (int32, error) {
	if in.SourceBudget == nil {
		return max(asked, 1), nil
	}
	replicas := plans.SliceOf(in.Set).Replicas
	d, err := pdb.Budget(in.SourceBudget.Spec, replicas)
	if err != nil {
		return 0, fmt.Errorf("PodDisruptionBudget %s: %w", in.SourceBudget.Name, err)
	}
	by, moved := plans.Stamped(in.SourceBudget)
	switch {
	case moved && (d < 1 || asked > d):
		return 0, fmt.Errorf("%s is being moved by plan %s, which has set PodDisruptionBudget %s to %s: finish that plan (`stsmigrate finalize`) or abort it (`stsmigrate abort`), and leave the budget as it is", in.Source, by.Plan, in.SourceBudget.Name, pdb.Words(in.SourceBudget.Spec))
	case d < 1:
		return 0, fmt.Errorf("PodDisruptionBudget %s of %s (%s) lets none of the %d pods be unavailable, and a move takes one at a time: raise it first", in.SourceBudget.Name, in.Source, pdb.Words(in.SourceBudget.Spec), replicas)
	case asked > d:
		return 0, fmt.Errorf("--max-unavailable %d is more than PodDisruptionBudget %s of %s allows (%s: %d of %d): raise the budget first, or ask for less", asked, in.SourceBudget.Name, in.Source, pdb.Words(in.SourceBudget.Spec), d, replicas)
	case asked > 0:
		return asked, nil
	}
	return d, nil
}
