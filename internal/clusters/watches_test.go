package clusters

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

func partial(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}}
}

// hears collects the reported changes of pods.
type hears struct{ told chan string }

func (h hears) tell(o types.NamespacedName, c Change) {
	if c.Gone {
		h.told <- o.Name + " is gone"
	} else {
		h.told <- o.Name + " " + c.Version
	}
}

func (h hears) next(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		select {
		case what := <-h.told:
			out = append(out, what)
		case <-time.After(10 * time.Second):
			t.Fatalf("only %v were told", out)
		}
	}
	slices.Sort(out)
	return out
}

func (h hears) nothing(t *testing.T) {
	t.Helper()
	select {
	case what := <-h.told:
		t.Errorf("%s was told", what)
	default:
	}
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, expected %q", what, got, want)
	}
}

func TestAWatchTellsOfWhatDiffers(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}}
	first, second := hears{make(chan string, 10)}, hears{make(chan string, 10)}
	one := w.join(listener{tell: first.tell})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Replace([]any{partial("web-0", "1"), partial("web-1", "1")}, ""))
	want(t, "at the beginning", first.next(t, 2), "web-0 1", "web-1 1")
	w.join(listener{tell: second.tell})
	second.nothing(t)
	must(w.Add(partial("web-2", "2")))
	must(w.Update(partial("web-0", "3")))
	must(w.Update(partial("web-0", "3")))
	must(w.Delete(partial("web-1", "4")))
	want(t, "the first", first.next(t, 3), "web-0 3", "web-1 is gone", "web-2 2")
	want(t, "the second", second.next(t, 3), "web-0 3", "web-1 is gone", "web-2 2")
	if w.leave(one) {
		t.Error("nobody is left, although one is")
	}
	must(w.Replace([]any{partial("web-2", "2"), partial("web-3", "5")}, "")) // after an outage
	want(t, "who has stayed", second.next(t, 2), "web-0 is gone", "web-3 5")
	first.nothing(t)
	second.nothing(t)
}

// scripted returns watches of a pod web-0, and each watch that they begin, which reports what the test tells it.
func scripted(t *testing.T) (*Watches, chan *watch.FakeWatcher) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewSimpleMetadataClient(scheme, partial("web-0", "1"))
	begun := make(chan *watch.FakeWatcher, 10)
	c.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		one := watch.NewFakeWithChanSize(10, false)
		begun <- one
		return true, one, nil
	})
	return &Watches{Of: c, open: map[subject]*watched{}}, begun
}

// All followers share one watch. It continues when the first follower leaves, and ends with the last
// one.
func TestAWatchEndsWithTheLastWhoFollows(t *testing.T) {
	w, begun := scripted(t)
	pods := subject{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "shop"}
	begins, leave := context.WithCancel(t.Context())
	stays, end := context.WithCancel(t.Context())
	first, second := hears{make(chan string, 10)}, hears{make(chan string, 10)}
	w.follow(begins, pods, listener{tell: first.tell})
	w.follow(stays, pods, listener{tell: second.tell})
	want(t, "the first", first.next(t, 1), "web-0 1")
	if len(w.open) != 1 {
		t.Errorf("%d watches", len(w.open))
	}
	one := w.open[pods]
	leave()
	watcher := <-begun
	watcher.Add(partial("web-1", "2"))
	for second.next(t, 1)[0] != "web-1 2" { // the change arrives before or after the first list
	}
	end()
	w.Wait()
	if len(w.open) > 0 || !watcher.IsStopped() {
		t.Fatal("the watch goes on after Wait")
	}
	again := hears{make(chan string, 10)}
	w.follow(t.Context(), pods, listener{tell: again.tell})
	want(t, "who comes later", again.next(t, 1), "web-0 1")
	if w.open[pods] == one {
		t.Error("the watch that has ended is used again")
	}
}

// A change reports whether the object was created or deleted, or only changed.
func TestPodsAreReportedWhenTheyChange(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{{Namespace: "shop", Name: "web-0"}: {version: "1"}}}
	var told []Change
	w.join(listener{tell: func(_ types.NamespacedName, c Change) { told = append(told, c) }})
	meta := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}}
	}
	for _, err := range []error{w.Add(meta("web-1", "7")), w.Update(meta("web-1", "8")), w.Update(meta("web-0", "9")), w.Delete(meta("web-0", "10"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []Change{{Version: "7", Turned: true}, {Version: "8"}, {Version: "9"}, {Gone: true, Turned: true}}; !slices.Equal(told, want) {
		t.Errorf("%+v, expected %+v", told, want)
	}
}

// A list is kept only while a watch reports its changes: the watch has reported all that there is, and is not
// interrupted.
func TestAWatchCoversWhatItReports(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewSimpleMetadataClient(scheme, partial("web-0", "1"))
	begun, may := make(chan *watch.FakeWatcher, 10), make(chan struct{})
	c.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		<-may
		one := watch.NewFakeWithChanSize(10, false)
		begun <- one
		return true, one, nil
	})
	w, signal := &Watches{Of: c, open: map[subject]*watched{}}, NewChangeSignal()
	ctx, end := context.WithCancel(t.Context())
	signal.Follow(ctx, w, plans.Source, "shop", Kinds{"Pod": {Version: "v1", Resource: "pods"}})
	pods := ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "shop"}
	absent := func(name string) bool {
		return signal.Absent(ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "shop", Name: name})
	}
	if signal.Covers(pods) || absent("web-9") {
		t.Error("it covers what no API server sends yet")
	}
	for range 2 {
		may <- struct{}{}
		stream := <-begun
		eventually(t, func() bool { return signal.Covers(pods) })
		if absent("web-0") || !absent("web-9") || signal.Absent(ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "mall", Name: "web-9"}) {
			t.Error("it does not say which pods of its namespace it has reported")
		}
		for _, other := range []ObjectKey{
			{Cluster: plans.Destination, Kind: "Pod", Namespace: "shop"}, {Cluster: plans.Source, Kind: "Node"}, {Cluster: plans.Source, Kind: "Pod", Namespace: "mall"},
		} {
			if signal.Covers(other) {
				t.Errorf("it covers %v", other)
			}
		}
		stream.Stop()
		eventually(t, func() bool { return !signal.Covers(pods) && !absent("web-9") })
	}
	close(may)
	end()
	w.Wait()
}

// Where nothing changes, an API server says at times that it is so. That is heard of that watch, and of no other.
func TestABookmarkShowsThatAWatchIsAlive(t *testing.T) {
	w, begun := scripted(t)
	signal := NewChangeSignal()
	r := recent(t)
	signal.Recent = r.Recent
	ctx, end := context.WithCancel(t.Context())
	signal.Follow(ctx, w, plans.Source, "shop", Kinds{"Pod": {Version: "v1", Resource: "pods"}})
	list := ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "shop"}
	stream := <-begun
	heard := func() time.Time {
		r.lock.Lock()
		defer r.lock.Unlock()
		return r.heard[list]
	}
	eventually(t, func() bool { return !heard().IsZero() }) // of what there is
	before := heard()
	mark := partial("", "7")
	stream.Action(watch.Bookmark, mark)
	eventually(t, func() bool { return heard().After(before) })
	end()
	w.Wait()
	if len(r.heard) != 1 {
		t.Errorf("heard %v, expected that list alone", r.heard)
	}
}

// The end of a stream may be noted only after the next one has begun.
func TestTheEndOfAFormerStreamEndsNoLaterOne(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}, synced: true}
	var ends []func()
	run := func(f func()) { ends = append(ends, f) } // later
	var streams []watch.Interface
	for range 2 {
		stream, err := w.attended(watch.NewFake(), nil, run)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	if _, err := w.attended(nil, errors.New("refused"), run); err == nil {
		t.Error("a refused stream has no error")
	}
	streams[0].Stop()
	if ends[0](); !w.isSynced() {
		t.Error("the later stream counts as ended")
	}
	streams[1].Stop()
	if ends[1](); w.isSynced() {
		t.Error("no stream is open")
	}
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	late := time.After(10 * time.Second)
	for !is() {
		select {
		case <-late:
			t.Fatal("not within ten seconds")
		default:
			goruntime.Gosched()
		}
	}
}

// A cluster may tell of ever new objects. What a watch keeps of them is bounded, and then it says of none that it is not there.
func TestAWatchKeepsNoMoreThanAClusterHas(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}, synced: true, open: true}
	for k := range maxWatched + 1 {
		if err := w.Update(partial(strconv.Itoa(k), "1")); err != nil {
			t.Fatal(err)
		}
	}
	if w.lacks(types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(maxWatched)}) || w.isSynced() {
		t.Error("an object that there was no room for counts as one that is not there")
	}
	if len(w.versions) > maxWatched {
		t.Errorf("%d objects are kept", len(w.versions))
	}
}
