package clusters

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watching is what the watches of a process say, beyond that something has changed.
type Watching interface {
	// Covers reports whether every change of a kind in a namespace is reported, and all that there is was.
	Covers(list ObjectKey) bool
	// Absent reports whether a watch that covers the kind of an object has reported all that there is, and not this one.
	Absent(t ObjectKey) bool
	// Stored returns an object as a watch has last reported it, or nil. It is shared, and must not be changed.
	Stored(t ObjectKey) client.Object
	// Wants has the watch of an object keep it from now on. The object is as it was read, nil for unknown.
	Wants(t ObjectKey, as client.Object)
}

// met is what this process knows of the versions of an object that it has read or written: no answer that it uses is
// older. The version is empty if it is unknown, after a write that has not told: then only an API server tells.
type met struct{ version string }

// meets notes the answer to a read. late reports that the object was written or reported meanwhile: then the answer is
// none of what the object is now. The caller holds the lock.
func (r *Recent) meets(t ObjectKey, o client.Object, late bool) {
	known, before := r.met[t]
	switch {
	case o == nil:
		if before { // what a watch still has of it is gone
			r.met[t] = met{}
		}
	case late && before && known.version == "": // it may have been read before a write
	case !before || known.version == "" || later(o.GetResourceVersion(), known.version):
		r.met[t] = met{o.GetResourceVersion()}
	}
}

// told notes what a watch has reported of an object that this process knows. Of one that is gone only an API server tells
// whether there is another. The caller holds the lock.
func (r *Recent) told(t ObjectKey, c Change) {
	known, before := r.met[t]
	switch {
	case !before || known.version == "":
	case c.Gone:
		r.met[t] = met{}
	case later(c.Version, known.version):
		r.met[t] = met{c.Version}
	}
}

// listed notes the version of an object in a list, which is no later than what a read after it shows.
func (r *Recent) listed(t ObjectKey, o client.Object) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if _, known := r.met[t]; !known { // a write whose answer is not known may be later
		r.met[t] = met{o.GetResourceVersion()}
	}
}

// stored fills in an object as a watch has it. It reports whether that may answer the read: the watch is alive, this
// process has read the object from an API server before, and has neither read nor written a later version since.
func (c keepingClient) stored(t ObjectKey, into client.Object) bool {
	o := c.recent.stored(t)
	if o == nil || reflect.TypeOf(o) != reflect.TypeOf(into) {
		return false
	}
	assign(into, o)
	return true
}

// stored is that of a keepingClient. It must be called WITHOUT the lock, as Covers.
func (r *Recent) stored(t ObjectKey) client.Object {
	r.lock.Lock()
	watches, least := r.watches, r.met[t].version
	believed := least != "" && r.believes(t)
	r.lock.Unlock()
	if !believed {
		return nil
	}
	o := watches.Stored(t)
	if o == nil || later(least, o.GetResourceVersion()) {
		return nil
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.met[t].version != least { // it was written or read meanwhile
		return nil
	}
	r.met[t] = met{o.GetResourceVersion()}
	return o
}

// wants has the watch of an object keep it.
func (c keepingClient) wants(t ObjectKey, o client.Object) {
	watches := c.recent.watching()
	if watches == nil || o == nil {
		return
	}
	if u, whole := o.(*unstructured.Unstructured); whole {
		if o = typedFor(t.Kind); typed(u, o) != nil {
			return
		}
	}
	watches.Wants(t, o)
}

// typedFor returns an empty object of a kind that has hasWhole.
func typedFor(kind string) client.Object {
	if kind == "PersistentVolume" {
		return &corev1.PersistentVolume{}
	}
	return &corev1.PersistentVolumeClaim{}
}
