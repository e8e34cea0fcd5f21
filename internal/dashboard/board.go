package dashboard

import (
	"reflect"
	"slices"
	"sync"
)

// Board holds the rows. Many goroutines may use it.
type Board struct {
	lock    sync.Mutex
	version int
	// removed is the version in which a row was removed last.
	removed int
	rows    map[key]versioned
	// changed is closed by the next change.
	changed chan struct{}
}

type key struct{ namespace, plan string }

type versioned struct {
	row     Row
	version int
}

// NewBoard returns a Board without rows.
func NewBoard() *Board {
	return &Board{version: 1, rows: map[key]versioned{}, changed: make(chan struct{})}
}

// Set adds or replaces a row.
func (b *Board) Set(r Row) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.set(r) {
		b.tell()
	}
}

// Remove removes a row.
func (b *Board) Remove(namespace, plan string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.remove(key{namespace, plan}) {
		b.tell()
	}
}

// Replace makes these rows the only ones.
func (b *Board) Replace(rows []Row) {
	b.lock.Lock()
	defer b.lock.Unlock()
	news, keep := false, map[key]bool{}
	for _, r := range rows {
		keep[key{r.Namespace, r.Plan}] = true
		news = b.set(r) || news
	}
	for k := range b.rows {
		if !keep[k] {
			news = b.remove(k) || news
		}
	}
	if news {
		b.tell()
	}
}

// set adds or replaces a row under the next version. The caller holds the lock.
func (b *Board) set(r Row) bool {
	k := key{r.Namespace, r.Plan}
	if have, there := b.rows[k]; there && reflect.DeepEqual(have.row, r) {
		return false
	}
	b.rows[k] = versioned{r, b.version + 1}
	return true
}

func (b *Board) remove(k key) bool {
	_, there := b.rows[k]
	delete(b.rows, k)
	if there {
		b.removed = b.version + 1
	}
	return there
}

// tell begins the next version and wakes the readers. The caller holds the lock.
func (b *Board) tell() {
	b.version++
	close(b.changed)
	b.changed = make(chan struct{})
}

// News is what has changed since a version.
type News struct {
	// All reports that Rows are all rows, and not only those that have changed.
	All  bool  `json:"all"`
	Rows []Row `json:"rows"`
}

// Since returns what has changed since a version, in the order of the page; 0 is before the first one. version
// is the present one, and next is closed by the next change.
func (b *Board) Since(last int) (news News, version int, next <-chan struct{}) {
	b.lock.Lock()
	defer b.lock.Unlock()
	news = News{All: last == 0 || b.removed > last, Rows: []Row{}}
	for _, v := range b.rows {
		if news.All || v.version > last {
			news.Rows = append(news.Rows, v.row)
		}
	}
	slices.SortFunc(news.Rows, before)
	return news, b.version, b.changed
}
