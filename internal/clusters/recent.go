package clusters

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/writes"
)

// FreshFor is how long the answer to a read counts as live. It bounds what a watch that has died silently can hide.
const FreshFor = 500 * time.Millisecond

// watchedFor is how long the answer to a read counts where it is Watched.
const watchedFor = 5 * time.Second

// Recent keeps the answers of API servers to reads of single objects, so that the looks and checks of a wave that
// follow one another read an object once. An answer counts for FreshFor, until a watch reports a later version of the
// object, and until this process writes the object. Without Keep it keeps nothing. It is safe for
// concurrent use.
//
// The answer to a write that succeeded is kept like that to a read: it is the object as the API server has stored it.
// An error says nothing of the object. Then the next look reads it.
//
// A decision on such an answer is like one on a read that was answered a moment earlier: every write is conditional
// on the object as it was read (S8), and follows a read of the journal (S9).
type Recent struct {
	lock  sync.Mutex
	now   func() time.Time // nil before Keep
	known map[ObjectKey]answer
	// outdated says when the answers about an object were last forgotten: a read that began before may be older.
	outdated map[ObjectKey]outdated
	pruned   time.Time
	// rosters are the lists that are kept, by cluster, kind and namespace. heard is when the watch of each list last
	// reported anything.
	rosters map[ObjectKey]*roster
	watches Watching // nil for none
	// met has the objects that this process has seen or written, and the last version that it knows of each: of these, no
	// watch says that they do not exist, or that they are as they were before.
	met   map[ObjectKey]met
	heard map[ObjectKey]time.Time
	sent  int
	// reading has the reads of single objects that are under way. Each is closed when it has ended.
	reading map[ObjectKey]chan struct{}
}

// Sent returns how many writes were sent since it was called last, dry runs left out.
func (r *Recent) Sent() int {
	r.lock.Lock()
	defer r.lock.Unlock()
	n := r.sent
	r.sent = 0
	return n
}

type answer struct {
	object client.Object // nil for an object that does not exist
	since  time.Time     // when the read began
	// restOutdated reports that the object has changed since, and not its spec.
	restOutdated bool
}

// keepsSpec reports whether the spec of an answer is not older than a change.
func (a answer) keepsSpec(c Change) bool {
	o := a.object
	return o != nil && !c.Gone && c.Generation > 0 && o.GetGeneration() == c.Generation && o.GetUID() == c.UID
}

// outdated is why answers to earlier requests do not count.
type outdated struct {
	at time.Time
	// version is the last one that a watch has reported. It is empty if the object is gone, or is being written.
	version string
	gone    bool
}

// keeps reports whether the answer to a read that was under way is not older than what a watch has reported meanwhile.
// An API server answers a read with what is stored, and a watch may be behind.
func (d outdated) keeps(o client.Object) bool {
	if o == nil || d.version == "" {
		return o == nil && d.gone
	}
	return !later(d.version, o.GetResourceVersion())
}

// NewRecent returns a Recent that keeps nothing yet.
func NewRecent() *Recent {
	return &Recent{known: map[ObjectKey]answer{}, outdated: map[ObjectKey]outdated{}, rosters: map[ObjectKey]*roster{}, met: map[ObjectKey]met{}, heard: map[ObjectKey]time.Time{}, reading: map[ObjectKey]chan struct{}{}}
}

// Keep makes it keep answers from now on. The watches, nil for none, must call Changed.
func (r *Recent) Keep(now func() time.Time, watches Watching) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.now, r.watches = now, watches
}

// believes reports whether the watch of an object's kind is alive, as far as this process has heard of it. The caller
// holds the lock.
func (r *Recent) believes(t ObjectKey) bool {
	return r.watches != nil && r.now != nil && Within(heardFor, r.heard[listOf(t)], r.now())
}

// missing reports whether a watch may answer that there is no such object. Like covers, it must be called WITHOUT the
// lock.
func (r *Recent) missing(t ObjectKey) bool {
	r.lock.Lock()
	_, met := r.met[t]
	watches, believed := r.watches, !met && r.believes(t)
	r.lock.Unlock()
	return believed && watches.Absent(t)
}

// listOf returns the key of the list that an object is in, as a watch of its namespace reports it.
func listOf(t ObjectKey) ObjectKey {
	t.Name = ""
	return t
}

// Heard notes that the watch of a list is alive: it has reported a change, or a bookmark.
func (r *Recent) Heard(list ObjectKey) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now != nil {
		r.heard[list] = r.now()
	}
}

// Changed forgets the answers about an object that a watch reports as changed.
func (r *Recent) Changed(t ObjectKey, c Change) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now == nil {
		return
	}
	r.prune(r.now()) // a plan that waits for long asks for nothing
	if r.heard[listOf(t)] = r.now(); c.Idle {
		return
	}
	r.news(t, c)
	for _, namespace := range []string{t.Namespace, ""} {
		if l := r.rosters[ObjectKey{Cluster: t.Cluster, Kind: t.Kind, Namespace: namespace}]; l != nil {
			l.note(t, c)
		}
		if t.Namespace == "" {
			break
		}
	}
}

// news forgets the answers about an object that are older than the version reported. A report of an older one is late:
// no look uses an answer for longer than FreshFor, in which no cluster goes back to a backup. It requires the lock.
func (r *Recent) news(t ObjectKey, c Change) {
	r.told(t, c)
	last := outdated{at: r.now(), version: c.Version, gone: c.Gone}
	if c.Gone {
		last.version = ""
	}
	if a := r.known[t]; a.keepsSpec(c) {
		a.restOutdated = a.restOutdated || !last.keeps(a.object)
		r.known[t] = a
	} else if !last.keeps(a.object) {
		delete(r.known, t)
	}
	r.outdated[t] = last
}

// forget forgets the answers about an object that this process writes, those to reads under way included. It returns
// the time to put down the answer to the write with, zero if none is kept.
func (r *Recent) forget(t ObjectKey) (began time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now == nil {
		return time.Time{}
	}
	r.met[t] = met{} // until its answer is here
	began = r.now()
	delete(r.known, t)
	r.outdated[t] = outdated{at: began}
	return began
}

// wrote ends a write that began at that time. It forgets the answers to reads during the write, and keeps the answer
// to the write unless a watch has reported a later version meanwhile, or this process has written the object twice at
// once. The answer is nil for none.
func (r *Recent) wrote(t ObjectKey, began time.Time, o client.Object) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if began.IsZero() {
		return
	}
	last := r.outdated[t]
	delete(r.known, t)
	r.outdated[t] = outdated{at: r.now()}
	if o == nil || o.GetResourceVersion() == "" || !last.at.Equal(began) && !last.keeps(o) {
		return
	}
	r.known[t] = answer{object: o, since: began}
	r.met[t] = met{o.GetResourceVersion()}
	r.outdated[t] = outdated{at: r.now(), version: o.GetResourceVersion()}
}

// Forget forgets all answers. The next reads are sent, lists are read again, and no watch is believed that something does
// not exist before it has reported anything.
func (r *Recent) Forget() {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now == nil {
		return
	}
	now := r.now()
	for t := range r.known {
		r.outdated[t] = outdated{at: now}
	}
	clear(r.known)
	clear(r.heard)
	for _, l := range r.rosters {
		l.changed, l.lost = nil, true
	}
}

// keeps reports whether it keeps answers.
func (r *Recent) keeps() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.now != nil
}

// ask returns the answer about an object, if there is one, and the time to put down a new one with. Like covers, it must
// be called WITHOUT the lock.
func (r *Recent) ask(t ObjectKey, of terms) (a answer, known bool, began time.Time) {
	valid := FreshFor
	if t.Kind == "CSIDriver" || of.watched && r.watched(t) { // whether a driver attaches never changes
		valid = watchedFor
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.now == nil {
		return answer{}, false, time.Time{}
	}
	began = r.now()
	r.prune(began)
	a, known = r.known[t]
	known = known && (!a.restOutdated || of.specOnly)
	return a, known && Within(valid, a.since, began), began
}

// watched reports whether a watch reports every change of an object.
func (r *Recent) watched(t ObjectKey) bool {
	watches := r.watching()
	return watches != nil && watches.Covers(ObjectKey{Cluster: t.Cluster, Kind: t.Kind, Namespace: t.Namespace})
}

// join returns a channel that is closed when no other caller reads an object any more, and notes that this caller reads
// it until end, unless another one does. Checks that run side by side send one request then.
func (r *Recent) join(t ObjectKey) (others <-chan struct{}, end func()) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if under, ok := r.reading[t]; ok {
		return under, func() {}
	}
	mine, none := make(chan struct{}), make(chan struct{})
	close(none)
	if r.now == nil {
		return none, func() {} // nothing is kept, so nothing can be shared
	}
	r.reading[t] = mine
	return none, func() {
		r.lock.Lock()
		defer r.lock.Unlock()
		delete(r.reading, t)
		close(mine)
	}
}

// put keeps the answer to a request that began at that time.
func (r *Recent) put(t ObjectKey, o client.Object, began time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if began.IsZero() {
		return
	}
	last, ok := r.outdated[t]
	late := ok && !began.After(last.at) && !last.keeps(o)
	r.meets(t, o, late)
	if late {
		return
	}
	r.known[t] = answer{object: o, since: began}
}

// prune removes what can have no effect any more, once in FreshFor. A read may take longer than watchedFor, and its
// answer does not count then.
func (r *Recent) prune(now time.Time) {
	if Within(FreshFor, r.pruned, now) {
		return
	}
	r.pruned = now
	for t, a := range r.known {
		if !Within(watchedFor, a.since, now) {
			delete(r.known, t)
		}
	}
	for t, last := range r.outdated {
		if !Within(watchedFor, last.at, now) {
			delete(r.outdated, t)
		}
	}
}

// ReadAll reads all objects of a kind of a namespace with lists, so that reads of single ones right after it find them.
// Where it may not, or fails, these read one by one.
func (r *Recent) ReadAll(ctx context.Context, on client.Client, kind schema.GroupVersionKind, namespace string) {
	c, ok := on.(keepingClient)
	if !ok || !r.keeps() {
		return
	}
	_, _, began := r.ask(ObjectKey{}, terms{})
	list := func() client.ObjectList {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return l
	}
	var all []*unstructured.Unstructured
	if Each(ctx, c.Client, list, func(o *unstructured.Unstructured) { all = append(all, o) }, client.InNamespace(namespace)) != nil {
		return
	}
	for _, o := range all {
		r.put(ObjectKey{Cluster: c.cluster, Kind: kind.Kind, Namespace: namespace, Name: o.GetName()}, o, began)
	}
}

// recently reads an object that this look has not read. Volumes and claims are read with all fields, since copies of them
// need these.
func (c keepingClient) recently(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	t := c.keyOf(into)
	t.Namespace, t.Name = key.Namespace, key.Name
	u, whole := into.(*unstructured.Unstructured)
	switch {
	case whole && !hasWhole(t.Kind):
		return c.Client.Get(ctx, key, into, opts...)
	case whole:
		return c.get(ctx, t, u, opts)
	case !hasWhole(t.Kind) || !c.recent.keeps():
		return c.get(ctx, t, into, opts)
	}
	if !reads.AreLive(opts) && c.stored(t, into) {
		return nil
	}
	kind, err := c.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	u = &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := c.get(ctx, t, u, opts); err != nil {
		return err
	}
	return typed(u, into)
}

// typed fills in an object from one with all fields.
func typed(u *unstructured.Unstructured, into client.Object) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return err
	}
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as with every other typed object
	return nil
}

// hasWhole reports whether the objects of a kind are kept with all fields.
func hasWhole(kind string) bool { return kind == "PersistentVolume" || kind == "PersistentVolumeClaim" }

func (c keepingClient) get(ctx context.Context, t ObjectKey, into client.Object, opts []client.GetOption) error {
	live := reads.AreLive(opts)
	known, ok, began := c.recent.ask(t, c.terms)
	if !ok && !live {
		others, end := c.recent.join(t)
		defer end()
		select {
		case <-others: // their answer may be outdated already: then this read sends its own request
			known, ok, began = c.recent.ask(t, c.terms)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch {
	case ok && !live:
		return answerWith(known.object, t, into)
	case !live && c.stored(t, into):
		return nil
	case c.terms.mayBeMissing && !live && c.recent.missing(t):
		return answerWith(nil, t, into)
	}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, into, opts...)
	if answer, ok := answered(into, err); ok {
		c.recent.put(t, answer, began)
		c.wants(t, answer)
	}
	return err
}

// keyOf returns the key of an object.
func (c keepingClient) keyOf(o client.Object) ObjectKey {
	kind := KindOf(o)
	if u, whole := o.(*unstructured.Unstructured); whole {
		kind = u.GetKind() // it is the name of the Go type for the kinds that are kept
	}
	return ObjectKey{Cluster: c.cluster, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// writes forgets an object before a write, and again after it: a read meanwhile may have had either answer. It keeps
// the answer to a write that succeeds, if it has one.
func (c keepingClient) writes(o client.Object, dryRun []string, write func() (answer client.Object, err error)) error {
	if len(dryRun) > 0 {
		_, err := write()
		return err
	}
	c.recent.lock.Lock()
	c.recent.sent++
	c.recent.lock.Unlock()
	t := c.keyOf(o) // before the answer fills in other fields
	began := c.recent.forget(t)
	answer, err := write()
	var kept client.Object
	if _, whole := answer.(*unstructured.Unstructured); err == nil && answer != nil && whole == hasWhole(t.Kind) {
		kept, _ = answered(answer, nil)
	}
	c.recent.wrote(t, began, kept)
	c.wants(t, kept)
	return err
}

// Create implements client.Writer.
func (c keepingClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.writes(o, (&client.CreateOptions{}).ApplyOptions(opts).DryRun, func() (client.Object, error) {
		if _, whole := o.(*unstructured.Unstructured); !whole && hasWhole(KindOf(o)) && c.recent.keeps() {
			return c.createWhole(ctx, o, opts)
		}
		err := c.Client.Create(ctx, o, opts...)
		return o, err
	})
}

// createWhole creates an object of which all fields are kept.
func (c keepingClient) createWhole(ctx context.Context, o client.Object, opts []client.CreateOption) (client.Object, error) {
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	if err := c.Client.Create(ctx, u, opts...); err != nil {
		return nil, err
	}
	return u, typed(u, o)
}

// Update implements client.Writer.
func (c keepingClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.writes(o, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun, func() (client.Object, error) {
		return nil, c.Client.Update(ctx, o, opts...)
	})
}

// Patch implements client.Writer.
func (c keepingClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.writes(o, (&client.PatchOptions{}).ApplyOptions(opts).DryRun, func() (client.Object, error) {
		change, ok := patch.(writes.Patch)
		if _, whole := o.(*unstructured.Unstructured); !ok || change.Next != nil || whole {
			return nil, c.Client.Patch(ctx, o, patch, opts...)
		}
		if hasWhole(KindOf(o)) && c.recent.keeps() {
			return c.patchWhole(ctx, o, change, opts)
		}
		into, _ := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
		into.SetNamespace(o.GetNamespace())
		into.SetName(o.GetName())
		change.Next = o
		if err := c.Client.Patch(ctx, into, change, opts...); err != nil {
			return nil, err
		}
		assign(o, into)
		return o, nil
	})
}

// patchWhole patches an object of which all fields are kept.
func (c keepingClient) patchWhole(ctx context.Context, o client.Object, change writes.Patch, opts []client.PatchOption) (client.Object, error) {
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	change.Next = o
	if err := c.Client.Patch(ctx, u, change, opts...); err != nil {
		return nil, err
	}
	into, _ := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if err := typed(u, into); err != nil {
		return nil, err
	}
	assign(o, into)
	return u, nil
}

// Delete implements client.Writer.
func (c keepingClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.writes(o, (&client.DeleteOptions{}).ApplyOptions(opts).DryRun, func() (client.Object, error) {
		return nil, c.Client.Delete(ctx, o, opts...)
	})
}
