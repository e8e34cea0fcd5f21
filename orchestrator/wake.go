package orchestrator

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Wake tells that something has changed on either side. Watches only wake: what
// is decided is read live.
type Wake struct {
	bell    chan struct{}
	mu      sync.Mutex
	changes map[thing]change
}

// NewWake returns a Wake that nothing rings yet.
func NewWake() *Wake {
	return &Wake{bell: make(chan struct{}, 1), changes: map[thing]change{}}
}

// Bell has a value when there are changes. It holds one value, so that changes
// during a look are not lost and many of them wake once.
func (w *Wake) Bell() <-chan struct{} { return w.bell }

func (w *Wake) ring(t thing, c change) {
	w.mu.Lock()
	w.changes[t] = c
	w.mu.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// take hands the changes over and forgets them: what is read from now on is as
// new as they are.
func (w *Wake) take() map[thing]change {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.changes
	w.changes = map[thing]change{}
	return out
}

// kinds are the resources whose changes are watched.
type kinds map[string]schema.GroupVersionResource

// Watch rings whenever something that a step of the plan may be waiting for has
// changed on either side. The watches end with ctx. also names further resources
// of the destination's namespace.
func (w *Wake) Watch(ctx context.Context, p *plans.Plan, configs map[plans.Side]*rest.Config, also kinds) error {
	for _, side := range plans.Sides() {
		c, err := metadata.NewForConfig(configs[side])
		if err != nil {
			return fmt.Errorf("watching the %s: %w", side, err)
		}
		cluster := side
		if p.OneCluster() {
			cluster = plans.Source
		}
		w.watch(ctx, c, cluster, p.On(side).Namespace, namespaced(p.On(side)))
		if p.Asks(plans.Gate.IsJob) {
			w.watch(ctx, c, cluster, p.On(side).Namespace, kinds{"Job": batchv1.SchemeGroupVersion.WithResource("jobs")})
		}
		for _, d := range p.Directories() {
			if d.On == side {
				w.watch(ctx, c, cluster, d.Namespace, kinds{"EndpointSlice": discoveryv1.SchemeGroupVersion.WithResource("endpointslices")})
			}
		}
		if len(p.Exports()) > 0 {
			w.watch(ctx, c, cluster, p.On(side).Namespace, kinds{"ServiceExport": {Group: mcsv1alpha1.GroupName, Version: mcsv1alpha1.GroupVersion.Version, Resource: mcsv1alpha1.ServiceExportPluralName}})
		}
		if side == plans.Destination {
			w.watch(ctx, c, cluster, p.On(side).Namespace, also)
		}
		if p.HasVolumes() && side == cluster { // without claims there is no right to see volumes
			w.watch(ctx, c, cluster, metav1.NamespaceAll, clusterWide())
		}
	}
	return nil
}

// WatchNamespace rings whenever a pod or a set of a namespace has changed.
func (w *Wake) WatchNamespace(ctx context.Context, config *rest.Config, namespace string) error {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("watching namespace %s: %w", namespace, err)
	}
	w.watch(ctx, c, plans.Source, namespace, kinds{
		"Pod":         {Version: "v1", Resource: "pods"},
		"StatefulSet": resourceOf(plans.Ref{}),
		"Slice":       resourceOf(plans.Ref{Kind: plans.SliceKind}),
	})
	return nil
}

func namespaced(set plans.Ref) kinds {
	return kinds{
		"Pod":                   {Version: "v1", Resource: "pods"},
		"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
		"StatefulSet":           resourceOf(set), // a slice looks like one
		"PodDisruptionBudget":   {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	}
}

func clusterWide() kinds {
	return kinds{
		"PersistentVolume": {Version: "v1", Resource: "persistentvolumes"},
		"VolumeAttachment": {Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
		"Node":             {Version: "v1", Resource: "nodes"}, // its kubelet says there which volumes it uses
	}
}

// Records are the resources in which a plan itself is kept, for those who watch
// it being carried out.
func Records() kinds {
	return kinds{
		"ConfigMap": {Version: "v1", Resource: "configmaps"},
		"Lease":     {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	}
}

func (w *Wake) watch(ctx context.Context, c metadata.Interface, cluster plans.Side, namespace string, what kinds) {
	factory := metadatainformer.NewFilteredSharedInformerFactory(c, 0, namespace, nil)
	for kind, resource := range what {
		tell := func(o any, gone bool) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if name, namespace, c, ok := changeOf(o, gone); ok {
				w.ring(thing{cluster, kind, namespace, name}, c)
			}
		}
		informer := factory.ForResource(resource).Informer()
		// Only the name is kept: a cluster may have many volumes. The two calls
		// below fail only after the informer has been started.
		_ = informer.SetTransform(nameOnly)
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { tell(o, false) },
			UpdateFunc: func(_, o any) { tell(o, false) },
			DeleteFunc: func(o any) { tell(o, true) },
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
