package clusters

import (
	"context"
	"maps"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ChangeSignal reports that something has changed on either side. It wakes a waiting reader, and outdates the answers
// that Recent keeps. No decision is made on what a watch reports: the object is read again.
type ChangeSignal struct {
	// Recent, if set, is told of every change. It must be set before the first watch.
	Recent  *Recent
	c       chan struct{}
	mu      sync.Mutex
	changes Changes
	// open are the watches, by cluster, kind and namespace.
	open map[ObjectKey]*watched
}

// Changes are the changes since the last Take.
type Changes struct {
	Of map[ObjectKey]Change
	// much reports that there were too many changes to track one by one: anything may have changed.
	much bool
}

// Without returns the changes without that of an object, if there is one that does not matter.
func (c Changes) Without(t ObjectKey, idle func() bool) Changes {
	if _, is := c.Of[t]; !is || !idle() {
		return c
	}
	c.Of = maps.Clone(c.Of)
	delete(c.Of, t)
	return c
}

// maxTrackedChanges is how many changes are tracked one by one. Clusters have thousands of volumes, and
// a process has hundreds of plans, each of which is notified of all of them.
const maxTrackedChanges = 64

// NewChangeSignal returns a ChangeSignal without a source of changes.
func NewChangeSignal() *ChangeSignal { return &ChangeSignal{c: make(chan struct{}, 1)} }

// C returns a channel that has a value when there are changes. It holds one value, so that changes
// during a look are not lost and many of them wake once.
func (w *ChangeSignal) C() <-chan struct{} { return w.c }

// Notify adds a change and wakes the waiting reader.
func (w *ChangeSignal) Notify(t ObjectKey, c Change) {
	if w.Recent != nil {
		w.Recent.Changed(t, c) // BEFORE the reader wakes
	}
	if c.Idle {
		return
	}
	w.mu.Lock()
	switch {
	case w.changes.much:
	case len(w.changes.Of) == maxTrackedChanges:
		w.changes = Changes{much: true}
	case w.changes.Of == nil:
		w.changes.Of = map[ObjectKey]Change{t: c}
	default:
		c.Turned = c.Turned || w.changes.Of[t].Turned
		w.changes.Of[t] = c
	}
	w.mu.Unlock()
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// Take returns the changes and forgets them: everything read from now on is at least as new as they are.
func (w *ChangeSignal) Take() Changes {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.changes
	w.changes = Changes{}
	return out
}

// Kinds are the resources whose changes are watched.
type Kinds map[string]schema.GroupVersionResource

// Watch notifies of every change on either side that a step of the plan may wait for, until ctx ends.
func (w *ChangeSignal) Watch(ctx context.Context, p *plans.Plan, on map[plans.Side]*Watches) {
	for _, side := range plans.Sides() {
		cluster := clusterOf(p, side)
		w.Follow(ctx, on[side], cluster, p.On(side).Namespace, namespaced(p.On(side)))
		if p.HasGate(plans.Gate.IsJob) {
			w.Follow(ctx, on[side], cluster, p.On(side).Namespace, Kinds{"Job": batchv1.SchemeGroupVersion.WithResource("jobs")})
		}
		for _, namespace := range p.Directories().In(side) {
			w.Follow(ctx, on[side], cluster, namespace, Kinds{"EndpointSlice": discoveryv1.SchemeGroupVersion.WithResource("endpointslices")})
		}
		if len(p.Exports()) > 0 {
			w.Follow(ctx, on[side], cluster, p.On(side).Namespace, Kinds{"ServiceExport": {Group: mcsv1alpha1.GroupName, Version: mcsv1alpha1.GroupVersion.Version, Resource: mcsv1alpha1.ServiceExportPluralName}})
		}
		if side != cluster {
			continue // both sides have the same nodes and volumes
		}
		w.Follow(ctx, on[side], cluster, metav1.NamespaceAll, nodes())
		if p.HasVolumes() {
			w.Follow(ctx, on[side], cluster, metav1.NamespaceAll, volumes())
		}
	}
}

// WatchDrains notifies of every change that decides which pods of a plan have to be evicted, or may be.
func (w *ChangeSignal) WatchDrains(ctx context.Context, p *plans.Plan, on map[plans.Side]*Watches) {
	for _, side := range plans.Sides() {
		cluster := clusterOf(p, side)
		of := namespaced(p.On(side))
		w.Follow(ctx, on[side], cluster, p.On(side).Namespace, Kinds{"Pod": of["Pod"], "StatefulSet": of["StatefulSet"], "PodDisruptionBudget": of["PodDisruptionBudget"]})
		if side == cluster {
			w.Follow(ctx, on[side], cluster, metav1.NamespaceAll, nodes())
		}
	}
}

// WatchSets notifies of every change of a pod or a set of a namespace.
func (w *ChangeSignal) WatchSets(ctx context.Context, on *Watches, namespace string) {
	w.Follow(ctx, on, plans.Source, namespace, Kinds{
		"Pod":         {Version: "v1", Resource: "pods"},
		"StatefulSet": ResourceOf(plans.Ref{}),
		"Slice":       ResourceOf(plans.Ref{Kind: plans.SliceKind}),
	})
}

// WatchRecords notifies of every change of a plan, a journal or a Lease of a namespace.
func (w *ChangeSignal) WatchRecords(ctx context.Context, home *Watches, namespace string) {
	w.Follow(ctx, home, plans.Destination, namespace, Kinds{
		"ConfigMap": {Version: "v1", Resource: "configmaps"},
		"Lease":     {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	})
}

func namespaced(set plans.Ref) Kinds {
	return Kinds{
		"Pod":                   {Version: "v1", Resource: "pods"},
		"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
		"StatefulSet":           ResourceOf(set), // a StatefulSetSlice looks like a StatefulSet
		"PodDisruptionBudget":   {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	}
}

// nodes are watched for cordons and taints, and for the volumes that their kubelets report as in use.
func nodes() Kinds { return Kinds{"Node": {Version: "v1", Resource: "nodes"}} }

func volumes() Kinds {
	return Kinds{
		"PersistentVolume": {Version: "v1", Resource: "persistentvolumes"},
		"VolumeAttachment": {Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	}
}

// Follow notifies of every change of objects of these kinds until ctx ends.
func (w *ChangeSignal) Follow(ctx context.Context, on *Watches, cluster plans.Side, namespace string, what Kinds) {
	if on == nil {
		return // a read-only caller has no watches
	}
	for kind, resource := range what {
		list := ObjectKey{Cluster: cluster, Kind: kind, Namespace: namespace}
		one := on.follow(ctx, subject{resource, namespace}, listener{
			tell: func(o types.NamespacedName, c Change) { w.Notify(ObjectKey{cluster, kind, o.Namespace, o.Name}, c) },
			mark: func() {
				if w.Recent != nil {
					w.Recent.Heard(list)
				}
			},
		})
		w.mu.Lock()
		if w.open == nil {
			w.open = map[ObjectKey]*watched{}
		}
		w.open[list] = one
		w.mu.Unlock()
	}
}

// Covers reports whether every change of a kind in a namespace is reported: a watch is open for exactly that, and has
// reported all that there is.
func (w *ChangeSignal) Covers(t ObjectKey) bool {
	one := w.watch(t)
	return one != nil && one.isSynced()
}

// Absent reports whether a watch that Covers a kind in the namespace of an object has not reported the object.
func (w *ChangeSignal) Absent(t ObjectKey) bool {
	one := w.watch(listOf(t))
	return one != nil && one.lacks(types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
}

func (w *ChangeSignal) watch(t ObjectKey) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[t]
}

// Stored implements Watching.
func (w *ChangeSignal) Stored(t ObjectKey) client.Object {
	if one := w.watch(listOf(t)); one != nil {
		return one.stored(types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
	}
	return nil
}

// Wants implements Watching.
func (w *ChangeSignal) Wants(t ObjectKey, as client.Object) {
	if one := w.watch(listOf(t)); one != nil {
		one.want(types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, as)
	}
}
