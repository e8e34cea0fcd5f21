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

// objectCache is what one watch has brought, as the store of its Reflector: of each object what a Syncer needs. It rings for
// those whose objects have changed, and for nobody else.
type objectCache struct {
	stop    context.CancelFunc
	lock    sync.Mutex
	objects map[types.NamespacedName]metav1.Object
	readers []*reader
	// whole is closed while the API server is heard and all that it had is here. Before, and from the end of a watch on
	// until it answers again, whoever comes waits for that.
	whole chan struct{}
}

// reader is who has joined.
type reader struct {
	who  string
	ring func()
}

// view is the part of a shelf that is one reader's.
type view struct {
	shelf *objectCache
	who   string
	// synced is closed once it may be read.
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

// leave reports whether nobody is left.
func (s *objectCache) leave(me *reader) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.readers = slices.DeleteFunc(s.readers, func(r *reader) bool { return r == me })
	return len(s.readers) == 0
}

// list returns the objects of the reader. They are shared, and nobody changes them.
func (v view) list() (out []metav1.Object) {
	v.shelf.lock.Lock()
	defer v.shelf.lock.Unlock()
	for _, o := range v.shelf.objects {
		if whose(o) == v.who {
			out = append(out, o)
		}
	}
	return out
}

// whose is the name of the set that a pod is of, that of a Service, or the ID of the plan that a slice is for.
func whose(o metav1.Object) string {
	switch o := o.(type) {
	case *corev1.Pod:
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			return owner.Name
		}
	case *corev1.Service:
		return o.Name
	case *discoveryv1.EndpointSlice:
		return o.Labels[PlanLabel]
	}
	return ""
}

// noticing notes from when on the API server is not heard: a watch has ended, and no answer has come yet that goes on from
// there.
func (s *objectCache) noticing(from *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: from.ListWithContextFunc,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := from.WatchFuncWithContext(ctx, o)
			if err != nil {
				s.complete(false)
				return nil, err
			}
			if o.SendInitialEvents == nil { // else all comes anew (Replace)
				s.complete(true)
			}
			return ending{w, func() { s.complete(false) }}, nil
		},
	}
}

// ending is a watch that tells of its end: whoever reads it stops it.
type ending struct {
	watch.Interface
	tell func()
}

// Stop implements watch.Interface.
func (e ending) Stop() {
	e.Interface.Stop()
	e.tell()
}

// complete sets whether whole is closed.
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

// Replace implements cache.ReflectorStore: what was missed while nobody was heard is in what differs.
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

// Transformer implements cache.TransformingStore: objects are cut down one by one, as they come.
func (s *objectCache) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if less, ok := slim(o); ok {
			return less, nil
		}
		return o, nil // a bookmark
	}
}

// put puts an object on the shelf, or takes it off, and rings for whom it was and for whom it is. The lock is held.
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
