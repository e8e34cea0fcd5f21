// Package witness watches a move from outside and reports afterwards whether it kept its promises. It shares
// no code with the engine that executes the move, so that one mistake cannot be in both.
//
// It opens raw watches on the pods, StatefulSets, PodDisruptionBudgets and PersistentVolumes of both sides.
// It judges the events in ONE goroutine, in the order in which they arrive. The guarantees of that order:
//
//   - Both sides in one cluster: pods of both namespaces come through one watch, and so do sets and budgets.
//     Within a kind the order is the API server's own; every overlap of two pods, however short, is seen.
//   - Two clusters have no common clock, and a watch that lags shows an effect before its cause. So what the
//     events of two clusters seem to show is read from both API servers before it is a violation. An overlap
//     that is shorter than the lag and those reads is not seen. An overlap that lasts is always seen.
//   - While an API server is away nothing happens to its objects, and those of the other cluster are
//     compared with them. From the moment at which the first watch resumes until the last one does, nothing
//     is compared: a watch that resumed earlier would show an effect before its cause. A violation that
//     exists only within that period is not seen.
//   - Different kinds come through different watches. Nothing is concluded from the order of a pod and a
//     set, or of a volume and a claim. Only the sum of the budgets' allowances and of the ordinals that are
//     down mixes two kinds: it counts when it has lasted for 300 ms.
//
// The witness sees API objects. It does not see containers, disks or nodes.
package witness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Side is one end of a move as the witness sees it.
type Side struct {
	Config    *rest.Config
	Namespace string
}

// Report is the result of a Witness.
type Report struct {
	// Violations lists the broken promises, each once, prefixed with the id of the rule.
	Violations []string
	// MaxUnavailable is the largest number of ordinals that were Ready on neither side at one moment. Only
	// ordinals that were Ready on some side at the start count. A terminating pod counts as not Ready.
	MaxUnavailable int
	// MaxAtRisk is the largest sum, lasting for 300 ms or more, of the evictions that the budgets of both
	// sides would have allowed and of the unavailable ordinals. It is measured while budgets of both sides
	// carry the mark of a move.
	MaxAtRisk int
	// Down is the longest time for which an ordinal was Ready on neither side, whatever the reason: a move, a
	// crash, a drain.
	Down map[int32]time.Duration
	// Spans holds the times of every ordinal of which a pod was seen.
	Spans map[int32]Span
}

// Span holds the times at which each event of an ordinal was first seen, by the local clock at the arrival of
// the event. The zero time means never.
type Span struct {
	SourceDeleting, SourceGone, DestinationCreated, DestinationRunning, DestinationReady time.Time
}

// Witness is one running observation.
type Witness struct {
	streams []stream
	events  chan event
	asks    chan ask
	cancel  context.CancelFunc
	running sync.WaitGroup
	record  *record
	seen    map[string]int64
	judged  chan struct{} // closed when the judging goroutine has ended
}

// event is one change of one object.
type event struct {
	cluster int
	object  runtime.Object
	gone    bool
	lost    string // why the watch ended, instead of an object
	away    bool   // the watch has ended, for now
	again   bool   // the object is as it was found afterwards
	back    bool   // the watch has resumed
	at      time.Time
}

// ask requests a notification when these versions have been seen.
type ask struct {
	versions map[string]int64
	done     chan struct{}
}

// stream is one list and watch.
type stream struct {
	cluster int
	kind    string
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Watch starts the watches of both sides of the move of a set, window ordinals at a time. It returns when
// they are established. Every later event is seen. The watches end with Stop, or with ctx.
func Watch(ctx context.Context, set string, window int, source, destination Side) (*Witness, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Witness{
		events: make(chan event, 1024), asks: make(chan ask), cancel: cancel,
		seen: map[string]int64{}, judged: make(chan struct{}),
	}
	one := source.Config.Host == destination.Config.Host
	w.record = newRecord(set, window, [2]place{{0, source.Namespace}, {1, destination.Namespace}})
	if one {
		w.record.places[1].cluster = 0
	}
	if err := w.open(ctx, source, destination, one); err != nil {
		cancel()
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		cancel()
		w.running.Wait()
		return nil, err
	}
	w.record.begin()
	go w.judge()
	return w, nil
}

// open prepares the streams. In one cluster the namespaced kinds are watched over all namespaces, since only
// the events of a single watch are ordered.
func (w *Witness) open(ctx context.Context, source, destination Side, one bool) error {
	var clients [2]kubernetes.Interface
	for cluster, side := range []Side{source, destination} {
		if cluster == 1 && one {
			break
		}
		config := rest.CopyConfig(side.Config)
		config.QPS = -1 // it must not be delayed
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		namespace := side.Namespace
		if one {
			namespace = metav1.NamespaceAll
		}
		clients[cluster] = client
		w.streams = append(w.streams, streams(client, cluster, namespace)...)
	}
	if !one {
		w.record.read = readers(ctx, w.record.set, clients, [2]string{source.Namespace, destination.Namespace})
	}
	return nil
}

func streams(client kubernetes.Interface, cluster int, namespace string) []stream {
	pods, volumes := client.CoreV1().Pods(namespace), client.CoreV1().PersistentVolumes()
	sets, budgets := client.AppsV1().StatefulSets(namespace), client.PolicyV1().PodDisruptionBudgets(namespace)
	return []stream{
		{cluster, "pods", listing(pods.List), pods.Watch},
		{cluster, "statefulsets", listing(sets.List), sets.Watch},
		{cluster, "poddisruptionbudgets", listing(budgets.List), budgets.Watch},
		{cluster, "persistentvolumes", listing(volumes.List), volumes.Watch},
	}
}

func listing[T runtime.Object](list func(context.Context, metav1.ListOptions) (T, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) }
}

// start records the existing objects and follows them from exactly that version.
func (w *Witness) start(ctx context.Context) error {
	for _, s := range w.streams {
		known := map[string]runtime.Object{}
		changes, err := w.look(ctx, s, known, w.take)
		if err != nil {
			return err
		}
		w.running.Go(func() { w.follow(ctx, s, known, changes) })
	}
	return nil
}

// look passes every existing object to tell, and a deletion for each known object that is gone. It returns a
// watch that starts at the version of the list.
func (w *Witness) look(ctx context.Context, s stream, known map[string]runtime.Object, tell func(event)) (watch.Interface, error) {
	list, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.kind, err)
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	changes, err := s.watch(ctx, metav1.ListOptions{ResourceVersion: of.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", s.kind, err)
	}
	there := map[string]bool{}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		k := string(m.GetUID())
		there[k], known[k] = true, o
		tell(event{cluster: s.cluster, object: o, at: time.Now()})
		return nil
	})
	for k, o := range known {
		if !there[k] {
			delete(known, k)
			tell(event{cluster: s.cluster, object: o, gone: true, at: time.Now()})
		}
	}
	return changes, err
}

// outage is the longest time that an API server may be away.
const outage = 3 * time.Minute

// follow forwards the events of a watch. When the watch ends because the API server is away, the objects
// found afterwards are compared with the known ones. Nothing happens to the objects of an API server that is
// away. So at most the changes between its return and this look are seen as one change instead of several.
func (w *Witness) follow(ctx context.Context, s stream, known map[string]runtime.Object, changes watch.Interface) {
	send := func(e event) {
		select {
		case w.events <- e:
		case <-ctx.Done():
		}
	}
	for {
		hear(ctx, s, known, changes, send)
		changes.Stop()
		if ctx.Err() != nil {
			return // the watch ended because its context did
		}
		send(event{cluster: s.cluster, away: true})
		var err error
		back := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, outage, true, func(context.Context) (bool, error) {
			// This uses the outer context: the context of the poll ends with it, and would end the watch.
			changes, err = w.look(ctx, s, known, func(e event) { e.again = true; send(e) })
			return err == nil, nil
		})
		if back != nil {
			if ctx.Err() == nil {
				send(event{lost: fmt.Sprintf("the watch on %s ended, and cannot go on: %v", s.kind, errors.Join(back, err))})
			}
			return
		}
		send(event{cluster: s.cluster, back: true, at: time.Now()})
	}
}

// hear forwards the events of a watch until it ends.
func hear(ctx context.Context, s stream, known map[string]runtime.Object, changes watch.Interface, send func(event)) {
	for {
		select {
		case <-ctx.Done():
			return
		case c, open := <-changes.ResultChan():
			if !open || c.Type == watch.Error || ctx.Err() != nil {
				return
			}
			if m, err := meta.Accessor(c.Object); err == nil {
				known[string(m.GetUID())] = c.Object
				if c.Type == watch.Deleted {
					delete(known, string(m.GetUID()))
				}
			}
			send(event{cluster: s.cluster, object: c.Object, gone: c.Type == watch.Deleted, at: time.Now()})
		}
	}
}

// judge is the only goroutine that evaluates events, until Stop.
func (w *Witness) judge() {
	defer close(w.judged)
	var asked *ask
	away := 0 // watches
	for {
		if asked != nil && away == 0 && w.caughtUp(asked.versions) {
			close(asked.done)
			asked = nil
		}
		select {
		case e, open := <-w.events:
			if !open {
				return
			}
			if e.away {
				away++
				continue
			}
			w.record.unsettled = w.record.unsettled || e.again || e.back
			if !e.back {
				w.take(e)
			} else if away--; away == 0 {
				w.record.settle(e.at)
			}
		case a := <-w.asks:
			asked = &a
		}
	}
}

func (w *Witness) take(e event) {
	if e.lost != "" {
		w.record.violate("witness: %s; what came after it is not known", e.lost)
		return
	}
	if o, err := meta.Accessor(e.object); err == nil {
		w.seen[key(e.cluster, e.object, o)] = version(o)
	}
	w.record.take(e)
}

func key(cluster int, o runtime.Object, m metav1.Object) string {
	return fmt.Sprintf("%d/%T/%s/%s", cluster, o, m.GetNamespace(), m.GetName())
}

func version(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (w *Witness) caughtUp(versions map[string]int64) bool {
	for k, v := range versions {
		if w.seen[k] < v {
			return false
		}
	}
	return true
}

// patience limits how long Stop waits for pending events.
const patience = 5 * time.Second

// Stop waits until the witness has seen the current pods, ends the watches and returns the Report.
func (w *Witness) Stop() *Report {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	behind := w.catchUp(ctx)
	w.cancel()
	w.running.Wait()
	close(w.events)
	<-w.judged
	if behind != nil {
		w.record.violate("witness: it could not catch up with the pods: %v", behind)
	}
	w.record.risk(0, time.Now())
	return w.record.report()
}

func (w *Witness) catchUp(ctx context.Context) error {
	a := ask{versions: map[string]int64{}, done: make(chan struct{})}
	for _, s := range w.streams {
		if s.kind != "pods" {
			continue
		}
		list, err := s.list(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			pod, ok := o.(*corev1.Pod)
			if ok && w.record.sideOf(s.cluster, pod.Namespace) >= 0 {
				a.versions[key(s.cluster, o, pod)] = version(pod)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	select {
	case w.asks <- a:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
