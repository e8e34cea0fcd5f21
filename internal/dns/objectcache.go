package dns

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// objectCache is the store of one Reflector. It holds only the fields of each object that a Syncer needs. It
// rings only for the readers whose objects have changed.
type objectCache struct {
	stop    context.CancelFunc
	lock    sync.Mutex
	objects map[types.NamespacedName]metav1.Object
	readers []*reader
	// whole is closed while the API server responds and all its objects are in the cache. Before that, and
	// from the end of a watch until the API server responds again, whole is open and a new reader waits for
	// it.
	whole chan struct{}
}

// reader is one Syncer that has joined.
type reader struct {
	who  string
	ring func()
}

// view is the part of a cache that belongs to one reader.
type view struct {
	cache *objectCache
	who   string
	// synced is closed once the view may be read.
	synced <-chan struct{}
}

func newShelf() *objectCache {
	return &objectCache{objects: map[types.NamespacedName]metav1.Object{}, whole: make(chan struct{})}
}

func (s *objectCache) join(who string, ring func()) (view, *reader) {
	s.lock.Lock()
	defer s.lock.Unlock()
	me := &reader{who, ring}
	s.readers = append(s.readers, me)
	return view{s, who, s.whole}, me
}

// leave reports whether no reader is left.
func (s *objectCache) leave(me *reader) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.readers = slices.DeleteFunc(s.readers, func(r *reader) bool { return r == me })
	return len(s.readers) == 0
}

// list returns the objects of the reader. They are shared and must not be changed.
func (v view) list() (out []metav1.Object) {
	v.cache.lock.Lock()
	defer v.cache.lock.Unlock()
	for _, o := range v.cache.objects {
		if whose(o) == v.who {
			out = append(out, o)
		}
	}
	return out
}

// whose returns the name of the set that owns a pod, the name of a Service, the ID of the plan of a slice, or ofService
// for a slice of another writer.
func whose(o metav1.Object) string {
	switch o := o.(type) {
	case *corev1.Pod:
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			return owner.Name
		}
	case *corev1.Service:
		return o.Name
	case *discoveryv1.EndpointSlice:
		if !ofPlan(o) {
			return ofService(o.Labels[discoveryv1.LabelServiceName])
		}
		return o.Labels[PlanLabel]
	}
	return ""
}

// ofService returns who reads the slices that others write for a Service. No ID of a plan has a slash.
func ofService(name string) string { return "service/" + name }

// noticing records when the API server does not respond: a watch has ended, and no new watch has resumed from
// there yet.
func (s *objectCache) noticing(from *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: from.ListWithContextFunc,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := from.WatchFuncWithContext(ctx, o)
			if err != nil {
				s.complete(false)
				return nil, err
			}
			if o.SendInitialEvents == nil { // otherwise all objects are sent again (Replace)
				s.complete(true)
			}
			return ending{w, func() { s.complete(false) }}, nil
		},
	}
}

// ending is a watch that reports its end: its reader always stops it.
type ending struct {
	watch.Interface
	tell func()
}

// Stop implements watch.Interface.
func (e ending) Stop() {
	e.Interface.Stop()
	e.tell()
}

// complete closes whole, or replaces it with an open channel.
func (s *objectCache) complete(is bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	select {
	case <-s.whole:
		if !is {
			s.whole = make(chan struct{})
		}
	default:
		if is {
			close(s.whole)
		}
	}
}

// Add implements cache.ReflectorStore.
func (s *objectCache) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore.
func (s *objectCache) Update(o any) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if o, ok := slim(o); ok {
		s.put(keyOf(o), o)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *objectCache) Delete(o any) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if o, ok := slim(o); ok {
		s.put(keyOf(o), nil)
	}
	return nil
}

// Replace implements cache.ReflectorStore. Changes missed while no watch was open show up as differences.
func (s *objectCache) Replace(all []any, _ string) error {
	defer s.complete(true)
	s.lock.Lock()
	defer s.lock.Unlock()
	there := make(map[types.NamespacedName]bool, len(all))
	for _, o := range all {
		if o, ok := slim(o); ok {
			there[keyOf(o)] = true
			s.put(keyOf(o), o)
		}
	}
	for key := range s.objects {
		if !there[key] {
			s.put(key, nil)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *objectCache) Resync() error { return nil }

// Transformer implements cache.TransformingStore: it reduces each object with slim as it arrives.
func (s *objectCache) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if less, ok := slim(o); ok {
			return less, nil
		}
		return o, nil // a bookmark
	}
}

// put stores an object, or deletes it if o is nil, and rings for its old and its new reader. The lock is
// held.
func (s *objectCache) put(key types.NamespacedName, o metav1.Object) {
	was := s.objects[key]
	if o == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = o
	}
	if equality.Semantic.DeepEqual(was, o) {
		return
	}
	for _, r := range s.readers {
		if was != nil && whose(was) == r.who || o != nil && whose(o) == r.who {
			r.ring()
		}
	}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
