package clusters

import (
	"context"
	"reflect"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ObjectKey names an object, or, without a name, all objects of a kind that one list returned. For a
// plan within one cluster, Cluster is the Source.
type ObjectKey struct {
	Cluster               plans.Side
	Kind, Namespace, Name string
}

// PodKey names a pod on a side of a plan.
func PodKey(p *plans.Plan, side plans.Side, name string) ObjectKey {
	return ObjectKey{Cluster: clusterOf(p, side), Kind: "Pod", Namespace: p.On(side).Namespace, Name: name}
}

// clusterOf returns the side that names the cluster of a side.
func clusterOf(p *plans.Plan, side plans.Side) plans.Side {
	if p.OneCluster() {
		return plans.Source
	}
	return side
}

// ReadCache holds the live reads of one look. An object is read once, however often the look requests
// it. The cache is also what a wait depends on: only a change of its objects can change the observation.
type ReadCache struct {
	Objects map[ObjectKey]client.Object // nil for an object that does not exist
	Lists   map[ObjectKey]client.ObjectList
	paged   map[ObjectKey]string // the versions of lists that were read page by page
	only    map[ObjectKey]string // the selections that the lists are of, or ""
	// Volumes are those of the wave. Their VolumeAttachments count as objects that were read.
	Volumes map[string]bool
}

// Clear forgets all reads: the next look reads everything again.
func (g *ReadCache) Clear() {
	g.Objects, g.Lists, g.paged = map[ObjectKey]client.Object{}, map[ObjectKey]client.ObjectList{}, map[ObjectKey]string{}
	g.only = map[ObjectKey]string{}
}

// Get implements client.Reader.
func (c keepingClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, whole := into.(*unstructured.Unstructured); c.look == nil || whole { // a full read of an object that the look has
		return c.recently(ctx, key, into, opts...)
	}
	t := ObjectKey{c.cluster, KindOf(into), key.Namespace, key.Name}
	if known, ok := c.look.Objects[t]; ok && !reads.AreLive(opts) {
		return answerWith(known, t, into)
	}
	err := c.recently(ctx, key, into, opts...)
	if answer, ok := answered(into, err); ok {
		c.look.Objects[t] = answer
	}
	return err
}

// answered returns a copy of the answer to a read, nil for an object that does not exist. It reports whether the API
// server has answered.
func answered(o client.Object, err error) (client.Object, bool) {
	if err != nil {
		return nil, apierrors.IsNotFound(err)
	}
	kept, ok := o.DeepCopyObject().(client.Object)
	return kept, ok
}

// answerWith answers a read with a kept answer.
func answerWith(kept client.Object, t ObjectKey, into client.Object) error {
	if kept == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: t.Kind}, t.Name)
	}
	assign(into, kept)
	return nil
}

// List implements client.Reader.
func (c keepingClient) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if c.look == nil {
		return c.recentList(ctx, into, opts...)
	}
	return c.list(ctx, into, opts)
}

// list reads a list for a look. The look keeps only whole lists, and a list of a selection answers for that selection
// alone. Of lists in pages it keeps the version.
func (c keepingClient) list(ctx context.Context, into client.ObjectList, opts []client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	t := ObjectKey{Cluster: c.cluster, Kind: strings.TrimSuffix(KindOf(into), "List"), Namespace: o.Namespace}
	known, ok := c.look.Lists[t]
	if only := selection(opts); ok && only == c.look.only[t] && o.LabelSelector == nil && o.FieldSelector == nil && o.Limit == 0 {
		share(into, known)
		return nil
	}
	if err := c.recentList(ctx, into, opts...); err != nil {
		return err
	}
	if all, ok := into.(*storagev1.VolumeAttachmentList); ok {
		c.attached(all)
	}
	switch {
	case o.Limit > 0 && o.Continue == "":
		c.look.paged[t] = into.GetResourceVersion()
	case o.Limit > 0: // the version of the first page counts
	case o.LabelSelector == nil && o.FieldSelector == nil && o.Raw == nil:
		kept, _ := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.ObjectList)
		share(kept, into)
		if ok { // what comes after either read is news
			kept.SetResourceVersion(known.GetResourceVersion())
		}
		c.look.Lists[t], c.look.only[t] = kept, selection(opts)
	}
	return nil
}

// selection names what a list is a selection of, or returns "".
func selection(opts []client.ListOption) string {
	for _, o := range opts {
		if only, ok := o.(Only); ok {
			return only.Of + "/" + only.For
		}
	}
	return ""
}

// attached keeps the VolumeAttachments of the wave's volumes.
func (c keepingClient) attached(all *storagev1.VolumeAttachmentList) {
	for k := range all.Items {
		a := &all.Items[k]
		if name := a.Spec.Source.PersistentVolumeName; name != nil && c.look.Volumes[*name] {
			c.look.Objects[ObjectKey{Cluster: c.cluster, Kind: "VolumeAttachment", Name: a.Name}] = a.DeepCopy()
		}
	}
}

func assign(into, known runtime.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
}

// share fills in a list with the items of another one. What the items refer to is the same, and must not be changed: a
// set of a thousand pods is listed in every look.
func share(into, known client.ObjectList) {
	to := reflect.ValueOf(into).Elem()
	to.Set(reflect.ValueOf(known).Elem())
	items := to.FieldByName("Items")
	items.Set(reflect.AppendSlice(reflect.MakeSlice(items.Type(), 0, items.Len()), items))
}

// KindOf returns the kind of a typed object: the name of its Go type.
func KindOf(o any) string { return reflect.TypeOf(o).Elem().Name() }

// Change is a change of an object.
type Change struct {
	Version string
	// UID and Generation are those of the object, if it is there. Without a Generation its spec may have changed.
	UID        types.UID
	Generation int64
	Gone       bool
	// Turned reports that the object was created or deleted, or that a node may be drained now, or no longer.
	Turned bool
	// Idle reports that nothing has changed that anybody looks at, such as when a kubelet reports that its node is well.
	Idle bool
}

// Urgency is when a look has to be repeated.
type Urgency int

// The urgencies, in ascending order.
const (
	Never Urgency = iota
	Soon          // there may be news: most changes in a list concern other plans
	Now
)

// Outdated reports whether one of the changes is news to the cache. In doubt it returns true.
func (g *ReadCache) Outdated(by Changes) bool {
	return g.News(by, func(ObjectKey) bool { return false }) != Never
}

// News returns how urgent the changes are. Now is for a change of an object that was read, and for a
// later change of a dear object in a list that was read. Soon is for later changes of other objects in
// such a list, and for changes that were too many to track.
func (g *ReadCache) News(by Changes, dear func(ObjectKey) bool) Urgency {
	out := Never
	if by.much {
		out = Soon
	}
	for t, c := range by.Of {
		if o, ok := g.Objects[t]; ok && c.newsTo(o) {
			return Now
		}
		for _, namespace := range []string{t.Namespace, ""} {
			all := ObjectKey{Cluster: t.Cluster, Kind: t.Kind, Namespace: namespace}
			l, whole := g.Lists[all]
			version, paged := g.paged[all]
			switch later := (c.Turned || !turnsOnly(t.Kind)) && (whole && c.after(l.GetResourceVersion()) || paged && c.after(version)); {
			case later && dear(t):
				return Now
			case later:
				out = Soon
			}
		}
	}
	return out
}

// turnsOnly reports whether the lists of a kind are read for what turns its objects alone: looks list nodes for drains.
func turnsOnly(kind string) bool { return kind == "Node" }

func (c Change) newsTo(seen client.Object) bool {
	if seen == nil {
		return !c.Gone
	}
	return c.after(seen.GetResourceVersion())
}

// after reports whether the change is later than a read at that version.
func (c Change) after(version string) bool { return c.Gone || later(c.Version, version) }

// later reports whether a version of a resource is later than another one. Kubernetes guarantees that
// they can be compared (KEP-5504). An error counts as later.
func later(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
