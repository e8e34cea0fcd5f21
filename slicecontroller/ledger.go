package slicecontroller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ledger has what this process has written and the cache has not shown yet (SC-4, SC-5).
// While it has anything of a set, nothing is decided about that set: what was created
// would be created again, and what was deleted counted as if it stayed.
type ledger struct {
	lock sync.Mutex
	// open are the pages of sets, and whose finds the set by the UID of what was written.
	open  map[types.NamespacedName]*page
	whose map[types.UID]types.NamespacedName
}

// page is what is open of a set, by the UID of what was written.
type page struct {
	entries map[types.UID]entry
	// awaited says that a pass has found something open, and comes back for it: nobody has to
	// wake the set before the last entry is struck out.
	awaited bool
}

// entry is one write.
type entry struct {
	set    types.UID
	key    types.NamespacedName // of the set
	object client.Object        // as the API server answered, or as it was deleted
	// gone says that the object was deleted: it has to be seen terminating, or no more.
	gone  bool
	since time.Time
}

func newLedger() *ledger {
	return &ledger{open: map[types.NamespacedName]*page{}, whose: map[types.UID]types.NamespacedName{}}
}

// add notes a write. The caller looks into the cache afterwards, and calls saw or lost: the
// event may have come before the answer.
func (l *ledger) add(e entry) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.open[e.key] == nil {
		l.open[e.key] = &page{entries: map[types.UID]entry{}}
	}
	l.open[e.key].entries[e.object.GetUID()], l.whose[e.object.GetUID()] = e, e.key
}

// saw strikes out what an object in the cache shows to have arrived. Of a set of which
// nothing is open any more it gives the name.
func (l *ledger) saw(o client.Object) (set types.NamespacedName, settled bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	set, known := l.whose[o.GetUID()]
	if !known || !l.open[set].entries[o.GetUID()].shownBy(o) {
		return set, false
	}
	return set, l.strike(set, o.GetUID())
}

// lost strikes out whatever is open about an object that is no more.
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
	return err != nil || order >= 0 // versions that cannot be compared stop nobody
}

// wait says whether anything is open of a set, and what is since a time or longer. Who is
// told so comes back by himself, at the latest then. Entries of a namesake that is no more
// are struck out; a set that is gone has no UID.
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

// oldest is what was written first of all that is open of a set, or nil.
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

// awaited says that a set is looked at again anyway.
func (l *ledger) awaited(key types.NamespacedName) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.open[key] != nil && l.open[key].awaited
}
