package orchestrator

import (
	"context"
	"reflect"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// thing names an object, or, without a name, all objects of a kind that one
// list read. In a plan within one cluster that cluster is the Source.
type thing struct {
	cluster               plans.Side
	kind, namespace, name string
}

// glance is what one look has read, live. An object is read once in it, however
// often the look asks for it. It is also what a wait depends on: nothing else can
// change what was seen.
type glance struct {
	objects map[thing]client.Object // nil for one that does not exist
	lists   map[thing]client.ObjectList
	paged   map[thing]string // the versions of lists that were gone through page by page, or out of a cache
	// cached says that a list came out of an API server's cache, which may lag behind what has been told.
	cached bool
	// volumes are those of the wave. Attachments of these are objects that were looked at.
	volumes map[string]bool
}

func (g *glance) clear() {
	g.objects, g.lists, g.paged, g.cached = map[thing]client.Object{}, map[thing]client.ObjectList{}, map[thing]string{}, false
}

// glancing returns clients that read through the glance and write past it.
func (g *glance) glancing(p *plans.Plan, on Clusters) Clusters {
	out := Clusters{}
	for side, c := range on {
		cluster := side
		if p.OneCluster() {
			cluster = plans.Source
		}
		out[side] = glancer{Client: c, glance: g, cluster: cluster}
	}
	return out
}

type glancer struct {
	client.Client
	glance  *glance
	cluster plans.Side
}

// Get implements client.Reader.
func (c glancer) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, whole := into.(*unstructured.Unstructured); whole {
		return c.Client.Get(ctx, key, into, opts...) // of an object that the glance has
	}
	t := thing{c.cluster, kindOf(into), key.Namespace, key.Name}
	known, ok := c.glance.objects[t]
	if !ok {
		err := c.Client.Get(ctx, key, into, opts...)
		switch {
		case err == nil:
			c.glance.objects[t], _ = into.DeepCopyObject().(client.Object)
		case apierrors.IsNotFound(err):
			c.glance.objects[t] = nil
		}
		return err
	}
	if known == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: t.kind}, t.name)
	}
	assign(into, known)
	return nil
}

// List implements client.Reader. Only whole lists, read live, are kept, and of others that they were
// read.
func (c glancer) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	t := thing{cluster: c.cluster, kind: strings.TrimSuffix(kindOf(into), "List"), namespace: o.Namespace}
	if known, ok := c.glance.lists[t]; ok && o.LabelSelector == nil && o.FieldSelector == nil && o.Limit == 0 {
		assign(into, known)
		return nil
	}
	if err := c.Client.List(ctx, into, opts...); err != nil {
		return err
	}
	if all, ok := into.(*storagev1.VolumeAttachmentList); ok {
		c.attached(all)
	}
	switch {
	case o.Raw != nil && o.Raw.ResourceVersion == "0":
		c.glance.paged[t], c.glance.cached = into.GetResourceVersion(), true
	case o.Limit > 0 && o.Continue == "":
		c.glance.paged[t] = into.GetResourceVersion()
	case o.Limit > 0: // the version is that of the first page
	case o.LabelSelector == nil && o.FieldSelector == nil && o.Raw == nil:
		c.glance.lists[t], _ = into.DeepCopyObject().(client.ObjectList)
	}
	return nil
}

// attached keeps the attachments of the wave's volumes.
func (c glancer) attached(all *storagev1.VolumeAttachmentList) {
	for k := range all.Items {
		a := &all.Items[k]
		if name := a.Spec.Source.PersistentVolumeName; name != nil && c.glance.volumes[*name] {
			c.glance.objects[thing{cluster: c.cluster, kind: "VolumeAttachment", name: a.Name}] = a.DeepCopy()
		}
	}
}

func assign(into, known runtime.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
}

// kindOf is the kind of a typed object: the name of its Go type.
func kindOf(o any) string { return reflect.TypeOf(o).Elem().Name() }

// change is the news of an object.
type change struct {
	version string
	gone    bool
	// turned says that it has come or gone.
	turned bool
}

// urgency says when something has to be looked at again.
type urgency int

const (
	never urgency = iota
	soon          // there may be news: in a list, many others are about as many others
	now
)

// outdated says whether one of the changes is news to the glance. In doubt it is.
func (g *glance) outdated(by changes) bool {
	return g.news(by, func(thing) bool { return false }) != never
}

// news says how urgent the changes are: those of an object that was looked at, or of a thing that is
// dear, and those of a list that are later than what was read.
func (g *glance) news(by changes, dear func(thing) bool) urgency {
	out := never
	if by.much {
		out = soon
	}
	for t, c := range by.of {
		if o, ok := g.objects[t]; ok && c.newsTo(o) {
			return now
		}
		for _, namespace := range []string{t.namespace, ""} {
			all := thing{cluster: t.cluster, kind: t.kind, namespace: namespace}
			l, whole := g.lists[all]
			version, paged := g.paged[all]
			switch later := whole && c.after(l.GetResourceVersion()) || paged && c.after(version); {
			case later && dear(t):
				return now
			case later:
				out = soon
			}
		}
	}
	return out
}

func (c change) newsTo(seen client.Object) bool {
	if seen == nil {
		return !c.gone
	}
	return c.after(seen.GetResourceVersion())
}

// after says whether it came after what was read at a version.
func (c change) after(version string) bool { return c.gone || later(c.version, version) }

// later compares two versions of one resource, which Kubernetes promises to be
// comparable (KEP-5504).
func later(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
