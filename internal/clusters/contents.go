package clusters

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans/weight"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// This file holds what the watches tell of objects beyond their names and versions: the objects themselves, as far as a
// plan has asked for them. A cluster has tens of thousands of volumes, and a plan reads those of its own ordinals.

// contents are the kinds whose objects the watches have whole, and an empty object of each. Of the others they have names
// and versions.
func contents() map[schema.GroupVersionResource]client.Object {
	return map[schema.GroupVersionResource]client.Object{
		corev1.SchemeGroupVersion.WithResource("nodes"):                  &corev1.Node{},
		corev1.SchemeGroupVersion.WithResource("pods"):                   &corev1.Pod{},
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): &corev1.PersistentVolumeClaim{},
		corev1.SchemeGroupVersion.WithResource("persistentvolumes"):      &corev1.PersistentVolume{},
		appsv1.SchemeGroupVersion.WithResource("statefulsets"):           &appsv1.StatefulSet{},
		policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"): &policyv1.PodDisruptionBudget{},
		storagev1.SchemeGroupVersion.WithResource("volumeattachments"):   &storagev1.VolumeAttachment{},
		v1alpha1.GroupVersion().WithResource("statefulsetslices"):        &v1alpha1.StatefulSetSlice{},
	}
}

// wholly are the clients that read and watch whole objects, by group and version.
type wholly map[schema.GroupVersion]rest.Interface

func newWholly(config *rest.Config) (wholly, error) {
	out := wholly{}
	codecs := serializer.NewCodecFactory(Scheme())
	for resource := range contents() {
		version := resource.GroupVersion()
		if out[version] != nil {
			continue
		}
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/apis", &version, codecs.WithoutConversion()
		if version.Group == "" {
			config.APIPath = "/api"
		}
		config.ContentType, config.AcceptContentTypes = "", ""
		if scheme.Scheme.IsVersionRegistered(version) { // Kubernetes' own kinds
			config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
		}
		c, err := rest.RESTClientFor(config)
		if err != nil {
			return nil, err
		}
		out[version] = c
	}
	return out, nil
}

// lists returns what lists and watches the objects of a subject, and an empty one of them; nil if the watches have only
// names and versions of such objects.
func (c wholly) lists(s subject) (*cache.ListWatch, client.Object) {
	example, through := contents()[s.resource], c[s.resource.GroupVersion()]
	if example == nil || through == nil {
		return nil, nil
	}
	return cache.NewListWatchFromClient(through, s.resource.Resource, s.namespace, fields.Everything()), example
}

// item is what a watch has of an object. It implements runtime.Object, for lists of them.
type item struct {
	metav1.ObjectMeta

	// node has what counts of a node, and object the whole object if a plan wants it.
	node   *node
	object client.Object
}

// GetObjectKind implements runtime.Object.
func (*item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. An item is never changed.
func (i *item) DeepCopyObject() runtime.Object { return i }

// trimmed drops all but names, versions and generations, what counts of nodes, and the objects that a plan wants.
func (w *watched) trimmed(o any) (any, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, err
	}
	return itemOf(o, m, w.wants(keyOf(m))), nil
}

// itemOf returns what a watch has of an object, which may be an item already.
func itemOf(o any, m metav1.Object, wanted bool) *item {
	if i, is := o.(*item); is {
		return i
	}
	out := &item{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(), Generation: m.GetGeneration(),
	}}
	if n, ok := o.(*corev1.Node); ok {
		out.node = asNode(n)
	}
	if wanted {
		out.object = whole(o)
	}
	return out
}

// whole returns an object as a plan reads it, nil if the watch does not have that.
func whole(o any) client.Object {
	if s, ok := o.(*v1alpha1.StatefulSetSlice); ok {
		if Understood(s) != nil || len(s.Spec.ReserveOrdinals) > 0 {
			return nil // the read says why
		}
		return s.Native()
	}
	object, ok := o.(client.Object)
	if _, partial := o.(*metav1.PartialObjectMetadata); !ok || partial {
		return nil
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as with every other typed object
	return object
}

// listed lists the items of a subject, page by page: a cluster may have many volumes, and few of them are wanted.
func (w *watched) listed(ctx context.Context, from *cache.ListWatch, o metav1.ListOptions) (runtime.Object, error) {
	out := &metainternalversion.List{}
	for o.Limit = PageSize; ; {
		of, err := w.page(ctx, from, o, out)
		if err != nil {
			return nil, err
		}
		if out.ResourceVersion == "" { // what comes after the first page is news
			out.ResourceVersion = of.GetResourceVersion()
		}
		if o.Continue = of.GetContinue(); o.Continue == "" {
			return out, nil
		}
		if len(out.Items) > maxWatched {
			return nil, ErrEndless{Objects: len(out.Items)}
		}
	}
}

// page adds one page of a list.
func (w *watched) page(ctx context.Context, from *cache.ListWatch, o metav1.ListOptions, to *metainternalversion.List) (metav1.ListInterface, error) {
	ctx, room := weight.WithRoom(ctx)
	defer room.Give()
	page, err := from.ListWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	of, err := meta.ListAccessor(page)
	if err != nil {
		return nil, err
	}
	return of, meta.EachListItem(page, func(o runtime.Object) error {
		one, err := w.trimmed(o)
		if i, ok := one.(*item); ok {
			if i.object != nil { // as it is, it would keep the page
				i.object, _ = i.object.DeepCopyObject().(client.Object)
			}
			to.Items = append(to.Items, i)
		}
		return err
	})
}

// kept is an object that a plan wants.
type kept struct {
	object client.Object // as it was last reported; nil for not yet
	used   bool          // since the last one was let go
}

// minKept is how many wanted objects a watch keeps without asking whether they are used.
const minKept = 256

func (w *watched) wants(key types.NamespacedName) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.kept[key] != nil
}

// want keeps an object from now on, as it was read if that is how the watch has last reported it.
func (w *watched) want(key types.NamespacedName, as client.Object) {
	w.lock.Lock()
	defer w.lock.Unlock()
	k := w.kept[key]
	if k == nil {
		w.letGo()
		k = &kept{}
		if w.kept == nil {
			w.kept = map[types.NamespacedName]*kept{}
		}
		w.kept[key] = k
	}
	k.used = true
	if as != nil && w.versions[key] == (reported{as.GetUID(), as.GetResourceVersion()}) {
		k.object, _ = as.DeepCopyObject().(client.Object)
	}
}

// letGo lets objects go that no plan has asked for since it did so before, each time there are twice as many. The caller
// holds the lock.
func (w *watched) letGo() {
	if len(w.kept) < max(2*w.left, minKept) {
		return
	}
	for key, k := range w.kept {
		if !k.used {
			delete(w.kept, key)
		}
		k.used = false
	}
	w.left = len(w.kept)
}

// stored returns an object as it was last reported, or nil.
func (w *watched) stored(key types.NamespacedName) client.Object {
	w.lock.Lock()
	defer w.lock.Unlock()
	k := w.kept[key]
	if k == nil || k.object == nil || !w.synced || !w.open || w.crowded || w.versions[key] != (reported{k.object.GetUID(), k.object.GetResourceVersion()}) {
		return nil
	}
	k.used = true
	return k.object
}
