package slicecontroller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger holds the writes of this process that the cache does not show yet (SC-4, SC-5). While it has an
// entry of a set, nothing is decided about that set: a created object would be created again, and a deleted
// object would count as if it stayed.
type ledger struct {
	lock sync.Mutex
	// open holds the page of each set. whose finds the set by the UID of the written object.
	open  map[types.NamespacedName]*page
	whose map[types.UID]types.NamespacedName
}

// page holds the open entries of a set, by the UID of the written object.
type page struct {
	entries map[types.UID]entry
	// awaited means that a pass found an open entry and requeues the set itself: no event needs to wake the
	// set before the last entry is removed.
	awaited bool
}

// entry is one write.
type entry struct {
	set    types.UID
	key    types.NamespacedName // of the set
	object client.Object        // as the API server returned it, or as it was deleted
	// gone means that the object was deleted: the cache must show it as terminating, or no longer have it.
	gone  bool
	since time.Time
}

func newLedger() *ledger {
	return &ledger{open: map[types.NamespacedName]*page{}, whose: map[types.UID]types.NamespacedName{}}
}

// add records a write. The caller reads the cache AFTERWARDS, and calls saw or lost: the event may arrive
// before the response to the write.
func (l *ledger) add(e entry) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.open[e.key] == nil {
		l.open[e.key] = &page{entries: map[types.UID]entry{}}
	}
	l.open[e.key].entries[e.object.GetUID()], l.whose[e.object.GetUID()] = e, e.key
}

// saw removes the entry that an object in the cache confirms. settled reports whether that was
// the last open entry of the set.
func (l *ledger) saw(o client.Object) (set types.NamespacedName, settled bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	set, known := l.whose[o.GetUID()]
	if !known || !l.open[set].entries[o.GetUID()].shownBy(o) {
		return set, false
	}
	return set, l.strike(set, o.GetUID())
}

// lost removes the entry of an object that no longer exists.
func (l *ledger) lost(uid types.UID) (set types.NamespacedName, settled bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	set, known := l.whose[uid]
	return set, known && l.strike(set, uid)
}

func (l *ledger) strike(set types.NamespacedName, uid types.UID) (settled bool) {
	delete(l.whose, uid)
	if delete(l.open[set].entries, uid); len(l.open[set].entries) == 0 {
		delete(l.open, set)
		return true
	}
	return false
}

func (e entry) shownBy(o client.Object) bool {
	if e.gone {
		return o.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), e.object.GetResourceVersion())
	return err != nil || order >= 0 // versions that cannot be compared block nothing
}

// wait reports whether a set has open entries, and returns those written at since or earlier. If open is
// true, the caller must requeue the set, at the latest for the time when an entry becomes overdue. Entries
// of a previous set of the same name are removed. A deleted set has the UID "".
func (l *ledger) wait(key types.NamespacedName, set types.UID, since time.Time) (open bool, overdue []entry) {
	l.lock.Lock()
	defer l.lock.Unlock()
	p := l.open[key]
	if p == nil {
		return false, nil
	}
	for uid, e := range p.entries {
		switch {
		case e.set != set:
			l.strike(key, uid)
		case !e.since.After(since):
			overdue = append(overdue, e)
		}
	}
	p.awaited = true
	return len(p.entries) > 0, overdue
}

// oldest returns the object of the oldest open entry of a set, or nil.
func (l *ledger) oldest(key types.NamespacedName) client.Object {
	l.lock.Lock()
	defer l.lock.Unlock()
	var first entry
	if p := l.open[key]; p != nil {
		for _, e := range p.entries {
			if first.object == nil || e.since.Before(first.since) {
				first = e
			}
		}
	}
	return first.object
}

// awaited reports whether a set will be looked at again anyway.
func (l *ledger) awaited(key types.NamespacedName) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.open[key] != nil && l.open[key].awaited
}
