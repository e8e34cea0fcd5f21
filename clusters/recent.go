package clusters

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// FreshFor is how long the answer to a read counts as live. It bounds what a watch that has died silently can hide.
const FreshFor = 500 * time.Millisecond

// Recent keeps the answers of API servers to reads of single objects, so that the looks and checks of a wave that
// follow one another read an object once. An answer is forgotten after FreshFor, as soon as a watch reports a change of
// the object, and when this process writes the object. Without Keep it keeps nothing. It is safe for concurrent use.
//
// A decision on such an answer is like one on a read that was answered a moment earlier: every write is conditional
// on the object as it was read (S8), and follows a read of the journal (S9).
type Recent struct {
	lock  sync.Mutex
	now   func() time.Time // nil before Keep
	known map[answerKey]answer
	// outdated is when the answers about an object were last forgotten: a read that began before may be older.
	outdated map[ObjectKey]time.Time
	pruned   time.Time
	// rosters are the lists that are kept, by cluster, kind and namespace. covered reports whether a watch reports
	// every change of the objects of such a list. heard is when the watches of a cluster last reported anything.
	rosters map[ObjectKey]*roster
	covered func(ObjectKey) bool
	heard   map[plans.Side]time.Time
}

// answerKey distinguishes the typed form of an object from the form with all fields, which is read for copies.
type answerKey struct {
	ObjectKey

	whole bool
}

type answer struct {
	object client.Object // nil for an object that does not exist
	since  time.Time     // when the read began
}

// NewRecent returns a Recent that keeps nothing yet.
func NewRecent() *Recent {
	return &Recent{known: map[answerKey]answer{}, outdated: map[ObjectKey]time.Time{}, rosters: map[ObjectKey]*roster{}, heard: map[plans.Side]time.Time{}}
}

// Keep makes it keep answers from now on. The watches must call Changed. covered reports whether they report every
// change of a kind in a namespace, and have reported all that there is.
func (r *Recent) Keep(now func() time.Time, covered func(ObjectKey) bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.now, r.covered = now, covered
}

// Changed forgets the answers about an object that a watch reports as changed.
func (r *Recent) Changed(t ObjectKey, c Change) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now == nil {
		return
	}
	r.heard[t.Cluster] = r.now()
	r.outdate(t)
	for _, namespace := range []string{t.Namespace, ""} {
		if l := r.rosters[ObjectKey{Cluster: t.Cluster, Kind: t.Kind, Namespace: namespace}]; l != nil {
			l.note(t, c)
		}
		if t.Namespace == "" {
			break
		}
	}
}

// forget forgets the answers about an object that this process writes, those to reads under way included.
func (r *Recent) forget(t ObjectKey) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now != nil {
		r.outdate(t)
	}
}

// outdate requires the lock.
func (r *Recent) outdate(t ObjectKey) {
	delete(r.known, answerKey{t, false})
	delete(r.known, answerKey{t, true})
	r.outdated[t] = r.now()
}

// ask returns the answer about an object, if there is one, and the time to put down a new one with.
func (r *Recent) ask(t answerKey) (a answer, known bool, began time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now == nil {
		return answer{}, false, time.Time{}
	}
	began = r.now()
	r.prune(began)
	a, known = r.known[t]
	return a, known && fresh(a.since, began), began
}

// put keeps the answer to a read that began at that time.
func (r *Recent) put(t answerKey, o client.Object, began time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if last, ok := r.outdated[t.ObjectKey]; began.IsZero() || ok && !began.After(last) {
		return
	}
	r.known[t] = answer{o, began}
}

// prune removes what can have no effect any more, once in FreshFor. A read may take longer than that, and its answer
// is not fresh then.
func (r *Recent) prune(now time.Time) {
	if fresh(r.pruned, now) {
		return
	}
	r.pruned = now
	for t, a := range r.known {
		if !fresh(a.since, now) {
			delete(r.known, t)
		}
	}
	for t, last := range r.outdated {
		if !fresh(last, now) {
			delete(r.outdated, t)
		}
	}
}

// fresh reports whether a time is no longer ago than FreshFor. A clock that was set back counts as long ago.
func fresh(since, now time.Time) bool { return Within(FreshFor, since, now) }

// Clients returns clients that read through it, and forget what they write.
func (r *Recent) Clients(p *plans.Plan, on Clusters) Clusters {
	out := Clusters{}
	for side, c := range on {
		cluster := clusterOf(p, side)
		if _, gone := c.(Gone); gone {
			out[side] = c
			continue
		}
		out[side] = recentClient{Client: c, recent: r, cluster: cluster}
	}
	return out
}

type recentClient struct {
	client.Client

	recent  *Recent
	cluster plans.Side
}

// Get implements client.Reader.
func (c recentClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	t, ok := c.keyOf(into)
	if !ok {
		return c.Client.Get(ctx, key, into, opts...)
	}
	t.Namespace, t.Name = key.Namespace, key.Name
	known, ok, began := c.recent.ask(t)
	if ok {
		return answerWith(known.object, t.ObjectKey, into)
	}
	err := c.Client.Get(ctx, key, into, opts...)
	if answer, ok := answered(into, err); ok {
		c.recent.put(t, answer, began)
	}
	return err
}

// keyOf returns the key of an object, and reports whether answers about its kind can be kept.
func (c recentClient) keyOf(o client.Object) (answerKey, bool) {
	t := answerKey{ObjectKey: ObjectKey{Cluster: c.cluster, Namespace: o.GetNamespace(), Name: o.GetName()}}
	u, whole := o.(*unstructured.Unstructured)
	if !whole {
		t.Kind = KindOf(o)
		return t, true
	}
	t.Kind, t.whole = u.GetKind(), true
	return t, t.Kind == "PersistentVolume" || t.Kind == "PersistentVolumeClaim" // they have one name here and in the watches
}

// writes forgets an object before a write, and again after it: a read meanwhile may have had either answer.
func (c recentClient) writes(o client.Object, dryRun []string, write func() error) error {
	if len(dryRun) > 0 {
		return write()
	}
	t, _ := c.keyOf(o) // before the answer fills in other fields
	c.recent.forget(t.ObjectKey)
	defer c.recent.forget(t.ObjectKey)
	return write()
}

// Create implements client.Writer.
func (c recentClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.writes(o, (&client.CreateOptions{}).ApplyOptions(opts).DryRun, func() error { return c.Client.Create(ctx, o, opts...) })
}

// Update implements client.Writer.
func (c recentClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.writes(o, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun, func() error { return c.Client.Update(ctx, o, opts...) })
}

// Patch implements client.Writer.
func (c recentClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.writes(o, (&client.PatchOptions{}).ApplyOptions(opts).DryRun, func() error { return c.Client.Patch(ctx, o, patch, opts...) })
}

// Delete implements client.Writer.
func (c recentClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.writes(o, (&client.DeleteOptions{}).ApplyOptions(opts).DryRun, func() error { return c.Client.Delete(ctx, o, opts...) })
}
