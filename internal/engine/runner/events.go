package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
)

const (
	// eventQueueSize is how many Events of one side may wait to be written; more are dropped.
	eventQueueSize = 16
	// eventWriteTimeout is how long the write of one Event is tried.
	eventWriteTimeout = 10 * time.Second
	// regardedFor is how long the UID of a set counts for an Event that reports progress. A set that was recreated
	// meanwhile blocks the plan, and a warning reads the UID anew.
	regardedFor = time.Minute
)

// Event is the content of an Event.
type Event struct{ Type, Reason, Message string }

// EventWriter writes Events about the two sets of a plan, into the clusters and namespaces of the sets:
// for users who manage a set, and see neither plan nor orchestrator. Nothing waits for an Event, and
// nothing fails without it.
type EventWriter struct {
	plan     *plans.Plan
	on       clusters.Clusters
	now      func() time.Time
	complain func(error)
	queues   map[plans.Side]chan Event
}

// regarded is the set of a side as its Events last named it.
type regarded struct {
	uid   types.UID
	since time.Time
}

// NewEventWriter returns a running EventWriter. on are clients that read slices as StatefulSets. complain
// receives one error per side, of the first Event that cannot be written.
func NewEventWriter(ctx context.Context, p *plans.Plan, on clusters.Clusters, now func() time.Time, complain func(error)) *EventWriter {
	h := &EventWriter{plan: p, on: on, now: now, complain: complain, queues: map[plans.Side]chan Event{}}
	for _, side := range plans.Sides() {
		queue := make(chan Event, eventQueueSize)
		h.queues[side] = queue
		go h.work(context.WithoutCancel(ctx), side, queue) // the last Event reports that the run is over
	}
	return h
}

// Write queues an Event about both sets. It does not block, and drops the Event if a queue is full.
func (h *EventWriter) Write(n Event) {
	for _, queue := range h.queues {
		select {
		case queue <- n:
		default:
		}
	}
}

// Close ends the EventWriter when its queued Events have been written, and does not wait for that.
func (h *EventWriter) Close() {
	for _, queue := range h.queues {
		close(queue)
	}
}

func (h *EventWriter) work(ctx context.Context, side plans.Side, queue <-chan Event) {
	var once sync.Once
	var set regarded
	for n := range queue {
		if err := h.send(ctx, side, &set, n); err != nil {
			once.Do(func() {
				h.complain(fmt.Errorf("Events about %s of the %s are not written, and the plan continues without them: %w", h.plan.On(side).Set(), side, err))
			})
		}
	}
}

func (h *EventWriter) send(ctx context.Context, side plans.Side, about *regarded, n Event) (err error) {
	defer plans.RecoverPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, eventWriteTimeout)
	defer cancel()
	now := h.now()
	if about.uid == "" || n.Type != corev1.EventTypeNormal || !clusters.Within(regardedFor, about.since, now) {
		set, err := sets.Steps{Pair: clusters.Pair{Plan: h.plan, On: h.on}}.Set(ctx, side)
		if *about = (regarded{}); err != nil || set == nil { // not created yet, or deleted
			return err
		}
		*about = regarded{set.UID, now}
	}
	return h.on[side].Create(ctx, eventAbout(h.plan.On(side), about.uid, n, now))
}

// eventAbout returns the Event. `kubectl describe` finds it by the UID of the set.
func eventAbout(ref plans.Ref, set types.UID, n Event, now time.Time) *corev1.Event {
	at := metav1.NewTime(now)
	kind := plans.NativeKind
	if ref.IsSlice() {
		kind = plans.SliceKind
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: fmt.Sprintf("%s.%x", ref.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: clusters.ResourceOf(ref).GroupVersion().String(), Kind: kind, Namespace: ref.Namespace, Name: ref.Name, UID: set,
		},
		Type: n.Type, Reason: n.Reason, Message: n.Message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "stsmigrate"}, ReportingController: "stsmigrate",
	}
}
