package orchestrator

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Wake tells that something has changed on either side. Watches only wake: what
// is decided is read live.
type Wake struct {
	bell    chan struct{}
	mu      sync.Mutex
	changes changes
}

// changes are what has come since they were last asked for.
type changes struct {
	of map[thing]change
	// much says that it is more than is worth remembering one by one: anything may have changed.
	much bool
}

// enough is how many changes are remembered one by one. Clusters have thousands of volumes, and a
// process has hundreds of plans that each hear of all of them.
const enough = 64

// NewWake returns a Wake that nothing rings yet.
func NewWake() *Wake { return &Wake{bell: make(chan struct{}, 1)} }

// Bell has a value when there are changes. It holds one value, so that changes
// during a look are not lost and many of them wake once.
func (w *Wake) Bell() <-chan struct{} { return w.bell }

func (w *Wake) ring(t thing, c change) {
	w.mu.Lock()
	switch {
	case w.changes.much:
	case len(w.changes.of) == enough:
		w.changes = changes{much: true}
	case w.changes.of == nil:
		w.changes.of = map[thing]change{t: c}
	default:
		c.turned = c.turned || w.changes.of[t].turned
		w.changes.of[t] = c
	}
	w.mu.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// take hands the changes over and forgets them: what is read from now on is as
// new as they are.
func (w *Wake) take() changes {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.changes
	w.changes = changes{}
	return out
}

// kinds are the resources whose changes are watched.
type kinds map[string]schema.GroupVersionResource

// Watch rings whenever something that a step of the plan may be waiting for has
// changed on either side, until ctx ends.
func (w *Wake) Watch(ctx context.Context, p *plans.Plan, on map[plans.Side]*Watches) {
	for _, side := range plans.Sides() {
		cluster := side
		if p.OneCluster() {
			cluster = plans.Source
		}
		w.watch(ctx, on[side], cluster, p.On(side).Namespace, namespaced(p.On(side)))
		if p.Asks(plans.Gate.IsJob) {
			w.watch(ctx, on[side], cluster, p.On(side).Namespace, kinds{"Job": batchv1.SchemeGroupVersion.WithResource("jobs")})
		}
		for _, d := range p.Directories() {
			if d.On == side {
				w.watch(ctx, on[side], cluster, d.Namespace, kinds{"EndpointSlice": discoveryv1.SchemeGroupVersion.WithResource("endpointslices")})
			}
		}
		if len(p.Exports()) > 0 {
			w.watch(ctx, on[side], cluster, p.On(side).Namespace, kinds{"ServiceExport": {Group: mcsv1alpha1.GroupName, Version: mcsv1alpha1.GroupVersion.Version, Resource: mcsv1alpha1.ServiceExportPluralName}})
		}
		if side != cluster {
			continue // the same nodes and volumes
		}
		w.watch(ctx, on[side], cluster, metav1.NamespaceAll, kinds{"Node": {Version: "v1", Resource: "nodes"}}) // its kubelet says there which volumes it uses
		if p.HasVolumes() {                                                                                     // without claims there is no right to see volumes
			w.watch(ctx, on[side], cluster, metav1.NamespaceAll, clusterWide())
		} else if side == cluster {
			w.watch(ctx, on[side], cluster, metav1.NamespaceAll, kinds{"Node": clusterWide()["Node"]})
		}
	}
}

// WatchDrains rings whenever something has changed that says which pods of a plan have to be evicted,
// or may be.
func (w *Wake) WatchDrains(ctx context.Context, p *plans.Plan, on map[plans.Side]*Watches) {
	for _, side := range plans.Sides() {
		cluster := side
		if p.OneCluster() {
			cluster = plans.Source
		}
		of := namespaced(p.On(side))
		w.watch(ctx, on[side], cluster, p.On(side).Namespace, kinds{"Pod": of["Pod"], "StatefulSet": of["StatefulSet"], "PodDisruptionBudget": of["PodDisruptionBudget"]})
		if side == cluster {
			w.watch(ctx, on[side], cluster, metav1.NamespaceAll, kinds{"Node": clusterWide()["Node"]})
		}
	}
}

// WatchSets rings whenever a pod or a set of a namespace has changed.
func (w *Wake) WatchSets(ctx context.Context, on *Watches, namespace string) {
	w.watch(ctx, on, plans.Source, namespace, kinds{
		"Pod":         {Version: "v1", Resource: "pods"},
		"StatefulSet": resourceOf(plans.Ref{}),
		"Slice":       resourceOf(plans.Ref{Kind: plans.SliceKind}),
	})
}

// WatchRecords rings whenever a plan, a journal or a Lease of a namespace has changed.
func (w *Wake) WatchRecords(ctx context.Context, home *Watches, namespace string) {
	w.watch(ctx, home, plans.Destination, namespace, kinds{
		"ConfigMap": {Version: "v1", Resource: "configmaps"},
		"Lease":     {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	})
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
	}
}

func (w *Wake) watch(ctx context.Context, on *Watches, cluster plans.Side, namespace string, what kinds) {
	if on == nil {
		return // who only looks goes without
	}
	for kind, resource := range what {
		on.follow(ctx, subject{resource, namespace}, func(o types.NamespacedName, c change) {
			w.ring(thing{cluster, kind, o.Namespace, o.Name}, c)
		})
	}
}
