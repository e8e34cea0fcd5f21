package clusters

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Watches are the watches of one cluster. All followers of the same kind in the same namespace share one
// watch, which ends with its last follower. Many plans therefore cost only as many watches as their
// kinds and namespaces.
type Watches struct {
	Of metadata.Interface
	// whole list and watch whole objects; nil for none.
	whole   wholly
	lock    sync.Mutex
	open    map[subject]*watched
	running sync.WaitGroup
}

// subject is what one watch covers; an empty namespace means all namespaces.
type subject struct {
	resource  schema.GroupVersionResource
	namespace string
}

// WatchBackoff returns how long a watch waits before it is opened again: after an outage of any length no more than ten
// seconds, in which names are not kept and a reader waits for its next look. The default of client-go is a minute.
func WatchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 5 * time.Second}
}

// NewWatches returns the Watches of a cluster. It opens none yet.
func NewWatches(config *rest.Config) (*Watches, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	whole, err := newWholly(config)
	if err != nil {
		return nil, err
	}
	return &Watches{Of: c, whole: whole, open: map[subject]*watched{}}, nil
}

// follow tells a listener every change of a subject until ctx ends. The listener must not block. A new watch
// reports every existing object first. A follower that joins later receives only later changes, and must
// look once by itself.
func (w *Watches) follow(ctx context.Context, s subject, by listener) *watched {
	w.lock.Lock()
	defer w.lock.Unlock()
	one, open := w.open[s]
	var whole context.Context // it outlives the first follower
	if !open {
		one = &watched{versions: map[types.NamespacedName]reported{}}
		whole, one.stop = context.WithCancel(context.WithoutCancel(ctx))
		w.open[s] = one
	}
	user := one.join(by)
	context.AfterFunc(ctx, func() { w.leave(s, one, user) })
	if !open { // AFTER the first follower has joined
		from, example := w.lister(s, one)
		reflector := cache.NewReflectorWithOptions(from, example, one, cache.ReflectorOptions{Name: "wake", Backoff: WatchBackoff()})
		w.running.Go(func() { reflector.RunWithContext(whole) })
	}
	return one
}

// Wait returns when no watch is open any more. The contexts of all followers must have ended.
func (w *Watches) Wait() { w.running.Wait() }

func (w *Watches) leave(s subject, one *watched, user *listener) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if one.leave(user) {
		delete(w.open, s)
		one.stop()
	}
}

// lister returns what lists and watches a subject, and an object as it returns them.
func (w *Watches) lister(s subject, one *watched) (cache.ListerWatcher, runtime.Object) {
	from, example := w.source(s)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" {
				o.ResourceVersion, o.ResourceVersionMatch = "", ""
			}
			return one.listed(ctx, from, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			stream, err := from.WatchWithContext(ctx, o)
			return one.attended(stream, err, w.running.Go)
		},
	}, w.Of), example
}

// source returns what lists and watches the objects of a subject whole, if there is that, or else their names and
// versions.
func (w *Watches) source(s subject) (*cache.ListWatch, runtime.Object) {
	if from, of := w.whole.lists(s); from != nil {
		return from, of
	}
	of := w.Of.Resource(s.resource).Namespace(s.namespace)
	return &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return of.Watch(ctx, o) },
	}, &metav1.PartialObjectMetadata{}
}

// watched is one open watch, as the store of its Reflector. It keeps the names and versions of objects,
// and reports those that have changed.
type watched struct {
	stop     context.CancelFunc
	lock     sync.Mutex
	versions map[types.NamespacedName]reported
	nodes    map[types.NamespacedName]*node
	kept     map[types.NamespacedName]*kept // the objects that a plan wants
	left     int                            // of these, when some were last let go
	users    []*listener
	synced   bool // everything that exists has been reported
	open     bool // the API server is sending changes
	streams  int  // how many streams have begun
	crowded  bool // there was no room for an object: this watch says of none any more that it is not there
}

// maxWatched is how many objects one watch keeps the versions of. A cluster that tells of more is read live.
const maxWatched = 200_000

// reported is what was last reported of an object. After an interruption there may be another object of its name, of
// which nothing that was concluded from the former one is true.
type reported struct {
	uid     types.UID
	version string
}

// listener is told of changes, and of every mark that the watch is alive and has reported all that came before it.
type listener struct {
	tell func(types.NamespacedName, Change)
	mark func() // may be nil
}

func (w *watched) join(by listener) *listener {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.users = append(w.users, &by)
	return &by
}

// leave removes a follower, and reports whether none is left.
func (w *watched) leave(user *listener) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.users = slices.DeleteFunc(w.users, func(u *listener) bool { return u == user })
	return len(w.users) == 0
}

// Add implements cache.ReflectorStore.
func (w *watched) Add(o any) error { return w.Update(o) }

// Update implements cache.ReflectorStore.
func (w *watched) Update(o any) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, err := w.see(o)
	return err
}

// Delete implements cache.ReflectorStore.
func (w *watched) Delete(o any) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	m, err := meta.Accessor(o)
	if err == nil {
		w.gone(keyOf(m))
	}
	return err
}

// Replace implements cache.ReflectorStore. It reports only the differences.
func (w *watched) Replace(all []any, _ string) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	there := make(map[types.NamespacedName]bool, len(all))
	for _, o := range all {
		key, err := w.see(o)
		if err != nil {
			return err
		}
		there[key] = true
	}
	for key := range w.versions {
		if !there[key] {
			w.gone(key)
		}
	}
	w.synced = true
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore: where nothing changes, an API server still says so at times.
func (w *watched) Bookmark(string) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, u := range w.users {
		if u.mark != nil {
			u.mark()
		}
	}
	return nil
}

func (w *watched) isSynced() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.synced && w.open && !w.crowded
}

// lacks reports whether all that there is has been reported, and an object is not among it.
func (w *watched) lacks(key types.NamespacedName) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, there := w.versions[key]
	return !there && w.synced && w.open && !w.crowded
}

// attended notes when the stream of a watch begins and ends. run runs a function concurrently.
func (w *watched) attended(from watch.Interface, err error, run func(func())) (watch.Interface, error) {
	if err != nil {
		return nil, err
	}
	begun := w.begins()
	events, stop := make(chan watch.Event), make(chan struct{})
	run(func() {
		defer close(events)
		defer w.ends(begun)
		defer from.Stop()
		for {
			select {
			case e, more := <-from.ResultChan():
				if !more {
					return
				}
				select {
				case events <- e:
				case <-stop:
					return
				}
			case <-stop:
				return
			}
		}
	})
	return attendedWatch{events, sync.OnceFunc(func() { close(stop) })}, nil
}

// begins notes a new stream and returns its number.
func (w *watched) begins() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.streams++
	w.open = true
	return w.streams
}

// ends notes the end of a stream. The end of a former one may be noted only after the next one has begun.
func (w *watched) ends(stream int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if stream == w.streams {
		w.open = false
	}
}

type attendedWatch struct {
	events <-chan watch.Event
	stop   func()
}

// ResultChan implements watch.Interface.
func (w attendedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w attendedWatch) Stop() { w.stop() }

// Resync implements cache.ReflectorStore.
func (w *watched) Resync() error { return nil }

// Transformer implements cache.TransformingStore: a cluster may have many volumes, which all arrive at once.
func (w *watched) Transformer() cache.TransformFunc { return w.trimmed }

// see reports an object whose version has changed. The caller holds the lock.
func (w *watched) see(o any) (types.NamespacedName, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return types.NamespacedName{}, err
	}
	key, is := keyOf(m), reported{m.GetUID(), m.GetResourceVersion()}
	k := w.kept[key]
	one := itemOf(o, m, k != nil)
	if k != nil && one.object != nil {
		k.object = one.object
	}
	was, known := w.versions[key]
	if was == is {
		return key, nil
	}
	if !known && len(w.versions) >= maxWatched {
		w.crowded = true
		return key, nil
	}
	w.versions[key] = is
	c := Change{Version: is.version, UID: is.uid, Generation: m.GetGeneration(), Turned: !known || was.uid != is.uid}
	if one.node != nil {
		c = one.node.since(w.nodes[key])
		if w.nodes == nil {
			w.nodes = map[types.NamespacedName]*node{}
		}
		w.nodes[key] = one.node
	}
	w.told(key, c)
	return key, nil
}

func (w *watched) gone(key types.NamespacedName) {
	delete(w.versions, key)
	delete(w.nodes, key)
	if k := w.kept[key]; k != nil {
		k.object = nil
	}
	w.told(key, Change{Gone: true, Turned: true})
}

func (w *watched) told(key types.NamespacedName, c Change) {
	for _, u := range w.users {
		u.tell(key, c)
	}
}

func keyOf(m metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}
