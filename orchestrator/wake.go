package orchestrator

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Wake returns a channel that gets a value whenever something that a step of
// the plan may be waiting for has changed on either side. Watches only wake: what
// is decided is read live. The channel holds one value, so that changes during
// a look are not lost and many of them wake once. The watches end with ctx.
// also names further resources of the destination's namespace.
func Wake(ctx context.Context, p *plans.Plan, configs map[plans.Side]*rest.Config, also ...schema.GroupVersionResource) (<-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	for _, side := range []plans.Side{plans.Source, plans.Destination} {
		c, err := metadata.NewForConfig(configs[side])
		if err != nil {
			return nil, fmt.Errorf("watching the %s: %w", side, err)
		}
		watch(ctx, c, p.On(side).Namespace, wake, namespaced())
		if side == plans.Destination && len(also) > 0 {
			watch(ctx, c, p.On(side).Namespace, wake, also)
		}
		if len(p.Claims) > 0 && (side == plans.Source || !p.OneCluster()) { // without claims there is no right to see volumes
			watch(ctx, c, metav1.NamespaceAll, wake, clusterWide())
		}
	}
	return wake, nil
}

func namespaced() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "persistentvolumeclaims"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	}
}

func clusterWide() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Version: "v1", Resource: "persistentvolumes"},
		{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	}
}

func watch(ctx context.Context, c metadata.Interface, namespace string, wake chan<- struct{}, kinds []schema.GroupVersionResource) {
	ring := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(c, 0, namespace, nil)
	for _, k := range kinds {
		informer := factory.ForResource(k).Informer()
		// Only the name is kept: a cluster may have many volumes. The two calls
		// below fail only after the informer has been started.
		_ = informer.SetTransform(nameOnly)
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { ring() },
			UpdateFunc: func(any, any) { ring() },
			DeleteFunc: func(any) { ring() },
		})
	}
	factory.Start(ctx.Done())
}

func nameOnly(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		}}, nil
	}
	return o, nil
}
