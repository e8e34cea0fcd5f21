package slicecontroller

import (
	"slices"
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
	// open are the entries by the UID of what was written.
	open map[types.UID]entry
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

func newLedger() *ledger { return &ledger{open: map[types.UID]entry{}} }

// add notes a write. The caller looks into the cache afterwards, and calls saw or lost: the
// event may have come before the answer.
func (l *ledger) add(e entry) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.open[e.object.GetUID()] = e
}

// saw strikes out what an object in the cache shows to have arrived, and gives the set
// that it is about.
func (l *ledger) saw(o client.Object) (set types.NamespacedName, struck bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	e, known := l.open[o.GetUID()]
	if !known || !e.shownBy(o) {
		return set, false
	}
	delete(l.open, o.GetUID())
	return e.key, true
}

// lost strikes out whatever is open about an object that is no more.
func (l *ledger) lost(uid types.UID) (set types.NamespacedName, struck bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	e, known := l.open[uid]
	delete(l.open, uid)
	return e.key, known
}

func (e entry) shownBy(o client.Object) bool {
	if e.gone {
		return o.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), e.object.GetResourceVersion())
	return err != nil || order >= 0 // versions that cannot be compared stop nobody
}

// of lists what is open of a set, the oldest first. Entries of a namesake that is no
// more are struck out.
func (l *ledger) of(key types.NamespacedName, set types.UID) []entry {
	l.lock.Lock()
	defer l.lock.Unlock()
	var out []entry
	for uid, e := range l.open {
		switch {
		case e.key != key:
		case e.set != set:
			delete(l.open, uid)
		default:
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return a.since.Compare(b.since) })
	return out
}
