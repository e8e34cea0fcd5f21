package clusters

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
)

// Many reads for the checks of many sets of one cluster. Objects without a namespace, and those of other namespaces than
// the sets', are listed once. What is in a namespace of sets is listed once for all sets of it, and forgotten with the
// client of that namespace: however many namespaces there are, few are in memory. It is safe for concurrent use.
type Many struct {
	on   client.Client
	wide *lists
	lock sync.Mutex
	// unknown are the kinds that the cluster does not know: to find that out again takes requests.
	unknown map[schema.GroupVersionKind]error
}

// manyClient answers the reads of the checks of one namespace.
type manyClient struct {
	client.Client
	many      *Many
	namespace string
	near      *lists
}

// lists are what was listed.
type lists struct {
	lock sync.Mutex
	of   map[question]*stock
}

// stock is what one list has shown, or why it was refused. A caller that needs it while it is being read waits for it.
type stock struct {
	lock   sync.Mutex
	done   bool
	err    error // a refusal, or that the cluster does not know the kind
	items  []client.Object
	byName map[string]client.Object
	// closed is the refusal of a read of a single object, where the list was refused too.
	closed error
}

// Get implements client.Reader.
func (c manyClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	kind, err := c.GroupVersionKindFor(into)
	if err != nil || len(opts) > 0 {
		return c.Client.Get(ctx, key, into, opts...)
	}
	s := c.stock(kind, key.Namespace, "")
	if !singly(into) {
		err := s.read(func() ([]client.Object, error) { return c.listed(ctx, kind, key.Namespace, nil) })
		switch {
		case err == nil && s.byName[key.Name] != nil:
			assign(into, s.byName[key.Name])
			return nil
		case err == nil || apierrors.IsNotFound(err):
			return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
		case !apierrors.IsForbidden(err):
			return err
		}
	}
	return c.singly(ctx, s, key, into)
}

// singly reports whether objects of a type are read one by one, although there are many: what is in them is not for
// who needs one of them.
func singly(o client.Object) bool {
	switch o.(type) {
	case *corev1.Secret, *corev1.ConfigMap:
		return true
	}
	return false
}

// singly reads one object. After one refusal nothing of its kind and namespace is asked for any more.
func (c manyClient) singly(ctx context.Context, s *stock, key client.ObjectKey, into client.Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed != nil {
		missed(ctx, s.closed, key.Namespace)
		return s.closed
	}
	err := c.Client.Get(ctx, key, into)
	if apierrors.IsForbidden(err) {
		s.closed = err
		missed(ctx, err, key.Namespace)
	}
	return err
}

// List implements client.Reader. What the items refer to is shared, and must not be changed.
func (c manyClient) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	kind, err := c.GroupVersionKindFor(into)
	name, byName := "", false
	if asked.FieldSelector != nil {
		name, byName = asked.FieldSelector.RequiresExactMatch("metadata.name")
	}
	if err != nil || reads.AreLive(opts) || asked.Raw != nil || asked.FieldSelector != nil && !byName {
		return c.Client.List(ctx, into, opts...)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	only, keep := "", func(o client.Object) client.Object { return o }
	if asked.Namespace == "" { // of what is in a namespace, each set needs another selection
		only = selection(opts)
		keep = keeper(opts, keep)
	}
	s := c.stock(kind, asked.Namespace, only)
	if err := s.read(func() ([]client.Object, error) { return c.listed(ctx, kind, asked.Namespace, keep) }); err != nil {
		missed(ctx, err, asked.Namespace)
		return err
	}
	var out []runtime.Object
	for _, o := range s.items {
		if (asked.LabelSelector == nil || asked.LabelSelector.Matches(labelsOf(o))) && (!byName || o.GetName() == name) {
			out = append(out, o)
		}
	}
	return meta.SetList(into, out)
}

// keeper returns how a selection keeps objects.
func keeper(opts []client.ListOption, otherwise func(client.Object) client.Object) func(client.Object) client.Object {
	at := slices.IndexFunc(opts, func(o client.ListOption) bool { _, is := o.(Only); return is })
	if at < 0 {
		return otherwise
	}
	only, _ := opts[at].(Only)
	return only.Keep
}

// stock returns where a list is kept.
func (c manyClient) stock(kind schema.GroupVersionKind, namespace, only string) *stock {
	on := c.many.wide
	if namespace != "" && namespace == c.namespace {
		on = c.near
	}
	q := question{kind.String() + " " + only, client.ObjectKey{Namespace: namespace}}
	on.lock.Lock()
	defer on.lock.Unlock()
	s := on.of[q]
	if s == nil {
		s = &stock{}
		on.of[q] = s
	}
	return s
}

// read fills the stock on the first call, and again after a read that failed.
func (s *stock) read(list func() ([]client.Object, error)) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.done {
		return s.err
	}
	items, err := list()
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return err
	}
	s.done, s.err, s.items, s.byName = true, err, items, map[string]client.Object{}
	for _, o := range items {
		s.byName[o.GetName()] = o
	}
	return err
}

// listed lists the objects of a kind, page by page, without who has written which of their fields: the sets are judged by
// that, and by nothing else.
func (c manyClient) listed(ctx context.Context, kind schema.GroupVersionKind, namespace string, keep func(client.Object) client.Object) (out []client.Object, err error) {
	if err := c.many.knows(kind, nil); err != nil {
		return nil, err
	}
	err = Each(ctx, c.Client, func() client.ObjectList { return c.listOf(kind) }, func(o client.Object) {
		if keep != nil {
			if o = keep(o); o == nil || reflect.ValueOf(o).IsNil() {
				return
			}
		}
		kept, _ := o.DeepCopyObject().(client.Object)
		if !strings.HasPrefix(kind.Kind, "StatefulSet") && kind.Kind != "PodDisruptionBudget" {
			kept.SetManagedFields(nil)
		}
		out = append(out, kept)
	}, client.InNamespace(namespace))
	return out, c.many.knows(kind, err)
}

// knows returns the error of a read of a kind, or the earlier one by which the cluster does not know the kind.
func (m *Many) knows(kind schema.GroupVersionKind, err error) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if meta.IsNoMatchError(err) {
		m.unknown[kind] = err
	}
	if before := m.unknown[kind]; before != nil {
		return before
	}
	return err
}

// listOf returns an empty list of a kind.
func (c manyClient) listOf(kind schema.GroupVersionKind) client.ObjectList {
	all := kind.GroupVersion().WithKind(kind.Kind + "List")
	if o, err := c.Scheme().New(all); err == nil {
		if list, ok := o.(client.ObjectList); ok {
			return list
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(all)
	return list
}

// lenientClient reads what it may not look at as if it were not there.
type lenientClient struct{ client.Client }

// Get implements client.Reader.
func (c lenientClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, into, opts...)
	if apierrors.IsForbidden(err) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: KindOf(into)}, key.Name)
	}
	return err
}

// List implements client.Reader.
func (c lenientClient) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, into, opts...)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
