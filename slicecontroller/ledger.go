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
	// open are the entries of a set, by the UID of what was written, and whose finds the set.
	open  map[types.NamespacedName]map[types.UID]entry
	whose map[types.UID]types.NamespacedName
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
	return &ledger{open: map[types.NamespacedName]map[types.UID]entry{}, whose: map[types.UID]types.NamespacedName{}}
}

// add notes a write. The caller looks into the cache afterwards, and calls saw or lost: the
// event may have come before the answer.
func (l *ledger) add(e entry) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.open[e.key] == nil {
		l.open[e.key] = map[types.UID]entry{}
	}
	l.open[e.key][e.object.GetUID()], l.whose[e.object.GetUID()] = e, e.key
}

// saw strikes out what an object in the cache shows to have arrived, and gives the set
// that it is about.
func (l *ledger) saw(o client.Object) (set types.NamespacedName, struck bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	set, known := l.whose[o.GetUID()]
	if !known || !l.open[set][o.GetUID()].shownBy(o) {
		return set, false
	}
	l.strike(set, o.GetUID())
	return set, true
}

// lost strikes out whatever is open about an object that is no more.
func (l *ledger) lost(uid types.UID) (set types.NamespacedName, struck bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	set, struck = l.whose[uid]
	l.strike(set, uid)
	return set, struck
}

func (l *ledger) strike(set types.NamespacedName, uid types.UID) {
	delete(l.whose, uid)
	if delete(l.open[set], uid); len(l.open[set]) == 0 {
		delete(l.open, set)
	}
}

func (e entry) shownBy(o client.Object) bool {
	if e.gone {
		return o.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), e.object.GetResourceVersion())
	return err != nil || order >= 0 // versions that cannot be compared stop nobody
}

// of lists what is open of a set. Entries of a namesake that is no more are struck out; a
// set that is gone has no UID.
func (l *ledger) of(key types.NamespacedName, set types.UID) []entry {
	l.lock.Lock()
	defer l.lock.Unlock()
	var out []entry
	for uid, e := range l.open[key] {
		if e.set != set {
			l.strike(key, uid)
		} else {
			out = append(out, e)
		}
	}
	return out
}
