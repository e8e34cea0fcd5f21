package clusters

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Only is an option of a list of which the caller needs few objects. A client that keeps lists (Recent) then returns
// these alone; any other client returns all, so the caller must still select them.
type Only struct {
	// Of names the selection. Another name means another selection.
	Of string
	// Keep returns what is needed of an object, as a copy, or nil if the object is not selected.
	Keep func(client.Object) client.Object
	// Fixed reports that an object is selected for its whole life, or never.
	Fixed bool
	// Turns reports that only what turns an object counts: other changes change nothing that Keep returns.
	Turns bool
	// Needs, if set, reports whether the caller needs a selected object this time, and For names that need. The
	// client keeps the others for later times, and reads what has changed of them when they are needed.
	Needs func(client.Object) bool
	For   string
}

// ApplyToList implements client.ListOption.
func (Only) ApplyToList(*client.ListOptions) {}

const (
	// maxOneByOne is how many changed objects are read one by one. With more, the list is read again.
	maxOneByOne = 16
	// laterFor is how long objects are kept that are not needed yet: a watch that has died silently hides no more than
	// what a wave would read anew that takes so long.
	laterFor = 5 * time.Second
	// maxForLater is how many objects are kept that are not needed yet. With more, the list is read for each need.
	maxForLater = 500
	// heardFor is how long the watch of a list may report nothing, not even a bookmark. Then the list is read again: its
	// watch may have died silently while others are alive. So no list is believed that is older than this (S19), and
	// where nothing happens it costs one list in that time, when it is needed. A watch that has reported nothing yet is
	// not believed at all.
	heardFor = 5 * time.Second
)

// roster is a selection of a list, kept up to date: a watch reports which objects have changed, and only these are
// read again. So a wave of a large set does not cost as much as the set is large.
type roster struct {
	of    string // the name of the selection
	turns bool   // that of Only
	// reading is locked by the one reader that brings the roster up to date.
	reading sync.Mutex
	known   map[ObjectKey]client.Object
	version string
	partial string // what the known objects were needed for, if the others were too many to keep

	// Guarded by the lock of Recent:
	changed map[ObjectKey]Change // since the last read
	lost    bool                 // there were too many, or the list was never read
	since   time.Time            // when the list was last read
}

// note notes a change. It requires the lock of Recent.
func (l *roster) note(t ObjectKey, c Change) {
	if l.lost || l.turns && !c.Turned {
		return
	}
	c.Turned = c.Turned || l.changed[t].Turned
	if l.changed[t] = c; len(l.changed) > maxOneByOne {
		l.changed, l.lost = nil, true
	}
}

// rosterOf returns the roster of a list, or nil if it must be read live.
func (r *Recent) rosterOf(t ObjectKey, only Only) *roster {
	if watches := r.watching(); watches == nil || !watches.Covers(t) {
		return nil
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	l := r.rosters[t]
	if l == nil || l.of != only.Of {
		l = &roster{of: only.Of, turns: only.Turns, lost: true}
		r.rosters[t] = l
	}
	heard, now := r.heard[t], r.now()
	if heard.IsZero() || !Within(heardFor, heard, now) && !Within(heardFor, l.since, now) {
		l.changed, l.lost = nil, true
	}
	return l
}

// watching returns what the watches say. What they are asked must be asked WITHOUT the lock: it waits for the lock of a
// watch, which calls Changed with that lock held.
func (r *Recent) watching() Watching {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.watches
}

// take takes the changes to read. whole reports that the list must be read again instead: from now on its changes are
// noted.
func (r *Recent) take(l *roster, only Only) (changed map[ObjectKey]Change, whole bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	changed, whole = l.changed, l.lost
	if only.Needs != nil {
		whole = whole || !Within(laterFor, l.since, r.now()) || l.partial != "" && l.partial != only.For || l.unknown() > 1
	}
	if l.changed, l.lost = map[ObjectKey]Change{}, false; whole {
		l.since = r.now() // BEFORE it is read
	}
	return changed, whole
}

// lose makes the next reader read the whole list, after a read that failed.
func (r *Recent) lose(l *roster) {
	r.lock.Lock()
	defer r.lock.Unlock()
	l.changed, l.lost = nil, true
}

// recentList reads a list that this look has not read.
func (c keepingClient) recentList(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	for _, o := range opts {
		only, ok := o.(Only)
		if !ok {
			continue
		}
		asked := (&client.ListOptions{}).ApplyOptions(opts)
		t := ObjectKey{Cluster: c.cluster, Kind: strings.TrimSuffix(KindOf(into), "List"), Namespace: asked.Namespace}
		if l := c.recent.rosterOf(t, only); l != nil && asked.Continue == "" {
			return c.kept(ctx, t, l, only, into)
		}
	}
	return c.Client.List(ctx, into, opts...)
}

// kept brings a roster up to date and returns what it has.
func (c keepingClient) kept(ctx context.Context, t ObjectKey, l *roster, only Only, into client.ObjectList) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	changed, whole := c.recent.take(l, only)
	err := error(nil)
	if whole {
		err = c.all(ctx, t, l, only, into)
	} else {
		err = c.news(ctx, l, only, changed, into)
	}
	if err != nil {
		c.recent.lose(l)
		return err
	}
	items := make([]runtime.Object, 0, len(l.known))
	for _, t := range inOrder(l.known) {
		items = append(items, l.known[t]) // what they refer to is shared, and never changed
	}
	into.SetResourceVersion(l.version)
	into.SetContinue("")
	return meta.SetList(into, items)
}

// all reads the whole list.
func (c keepingClient) all(ctx context.Context, t ObjectKey, l *roster, only Only, into client.ObjectList) error {
	l.known = map[ObjectKey]client.Object{}
	var first client.ObjectList
	page := func() client.ObjectList {
		list, _ := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.ObjectList)
		if first == nil {
			first = list
		}
		return list
	}
	if err := Each(ctx, c.Client, page, func(o client.Object) { c.listed(l, t, only, o) }, client.InNamespace(t.Namespace)); err != nil {
		return err
	}
	l.version = first.GetResourceVersion()
	if l.partial = ""; only.Needs != nil && len(l.known) > maxForLater {
		l.partial = only.For
		maps.DeleteFunc(l.known, func(_ ObjectKey, o client.Object) bool { return !only.Needs(o) })
	}
	return nil
}

// unknown returns how many objects have come of which only a read can tell whether they are needed. One list is cheaper
// than two such reads.
func (l *roster) unknown() (n int) {
	for t, c := range l.changed {
		if l.known[t] == nil && c.Turned && !c.Gone {
			n++
		}
	}
	return n
}

// defers notes changes again, of objects that are not needed yet.
func (r *Recent) defers(l *roster, changed map[ObjectKey]Change) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for t, c := range changed {
		last, again := l.changed[t]
		if !again {
			last = c
		}
		last.Turned = last.Turned || c.Turned
		l.note(t, last)
	}
}

// news reads the objects that have changed. It also reads those that a watch reports as gone: one of the same name may
// be there, and may have been read before the watch came that far.
func (c keepingClient) news(ctx context.Context, l *roster, only Only, changed map[ObjectKey]Change, into client.ObjectList) error {
	looks, unread := c, map[ObjectKey]Change{}
	looks.terms.watched = false // they use the list too
	defer func() { c.recent.defers(l, unread) }()
	for _, t := range inOrder(changed) {
		change, was := changed[t], l.known[t]
		switch {
		case was == nil && (change.Gone || only.Fixed && !change.Turned):
			continue // not selected
		case was != nil && !change.Gone && change.Version == was.GetResourceVersion():
			continue // as it was read; an older version may be that of a backup
		case was != nil && only.Needs != nil && !only.Needs(was):
			unread[t] = change
			continue
		}
		o, err := emptyOf(into)
		if err != nil {
			return err
		}
		switch err := looks.recently(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, o); {
		case apierrors.IsNotFound(err):
			delete(l.known, t)
		case err != nil:
			return err
		default:
			l.put(t, only, o)
		}
	}
	return nil
}

// listed takes an object of a list. From then on the watch may answer for it.
func (c keepingClient) listed(l *roster, of ObjectKey, only Only, o client.Object) {
	if t := (ObjectKey{of.Cluster, of.Kind, o.GetNamespace(), o.GetName()}); l.put(t, only, o) && (only.Needs == nil || only.Needs(o)) {
		c.recent.listed(t, o)
		c.wants(t, o)
	}
}

// put keeps an object if it is selected, and reports whether it is.
func (l *roster) put(t ObjectKey, only Only, o client.Object) bool {
	kept := only.Keep(o)
	if kept == nil {
		delete(l.known, t)
		return false
	}
	l.known[t] = kept
	return true
}

// emptyOf returns an empty object of the type that a list has.
func emptyOf(list client.ObjectList) (client.Object, error) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	o, ok := reflect.New(reflect.TypeOf(items).Elem().Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no objects of a cluster", list)
	}
	return o, nil
}

// inOrder returns the keys of objects in the order in which an API server lists them.
func inOrder[V any](objects map[ObjectKey]V) []ObjectKey {
	return slices.SortedFunc(maps.Keys(objects), func(a, b ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
