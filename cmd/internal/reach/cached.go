package reach

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Cached reads the records of plans from watches.
type Cached struct {
	Client client.Client
	// Declared reports that StatefulSetMigrations can be read too.
	Declared bool
}

// Cached watches the records of a namespace, or of all namespaces with "", until ctx ends. It calls changed for
// each change, and lost when a watch has failed and is tried again.
func (e *End) Cached(ctx context.Context, namespace string, changed func(), lost func(error)) (*Cached, error) {
	of, err := labels.NewRequirement(plans.PlanLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	recorded := cache.ByObject{Label: labels.NewSelector().Add(*of)} // other Leases are those of nodes
	o := cache.Options{
		Scheme: clusters.Scheme(), DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: recorded, &coordinationv1.Lease{}: recorded},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			lost(err)
		},
	}
	if namespace != "" {
		o.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	watched, err := cache.New(e.config, o)
	if err != nil {
		return nil, err
	}
	declared, err := e.readable(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all := []client.Object{&corev1.ConfigMap{}, &coordinationv1.Lease{}}
	if declared {
		all = append(all, records.NewDeclared("", ""))
	}
	for _, o := range all {
		i, err := watched.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		}); err != nil {
			return nil, err
		}
	}
	go func() {
		if err := watched.Start(ctx); err != nil {
			lost(err)
		}
	}()
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("reading the plans of context %s: %w", e.Context, context.Cause(ctx))
	}
	c, err := client.New(e.config, client.Options{Scheme: clusters.Scheme(), Cache: &client.CacheOptions{Reader: watched, Unstructured: true}})
	return &Cached{Client: c, Declared: declared}, err
}

// readable reads one object of each kind, so that a missing right is an error and no watch that never begins. It
// reports whether StatefulSetMigrations can be read: a cluster may not have them.
func (e *End) readable(ctx context.Context, namespace string) (declared bool, err error) {
	within := []client.ListOption{client.InNamespace(namespace), client.Limit(1)}
	if err := e.Client.List(ctx, &corev1.ConfigMapList{}, append(within, client.HasLabels{plans.PlanLabel})...); err != nil {
		return false, fmt.Errorf("listing plans: %w", err)
	}
	if err := e.Client.List(ctx, &coordinationv1.LeaseList{}, append(within, client.HasLabels{plans.PlanLabel})...); err != nil {
		return false, fmt.Errorf("listing the Leases of plans: %w", err)
	}
	switch _, err := records.ListDeclared(ctx, e.Client, within...); {
	case meta.IsNoMatchError(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("listing StatefulSetMigrations: %w", err)
	}
	return true, nil
}
