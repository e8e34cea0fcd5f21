package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/sets"
)

const (
	// rumours is how many Events of one side may wait to be written; more are dropped.
	rumours = 16
	// attention is for how long one of them is tried.
	attention = 10 * time.Second
)

// News is what an Event says.
type News struct{ Type, Reason, Message string }

// Herald writes Events about the two sets of a plan, into the clusters and namespaces where
// they are: for those who look after a set, and see neither plan nor orchestrator. Nothing waits for
// an Event, and nothing fails without it.
type Herald struct {
	plan     *plans.Plan
	on       clusters.Clusters
	now      func() time.Time
	complain func(error)
	queues   map[plans.Side]chan News
}

// NewHerald returns a Herald at work. on are clients in the words of the plan; complain is told
// once per side of what cannot be written.
func NewHerald(ctx context.Context, p *plans.Plan, on clusters.Clusters, now func() time.Time, complain func(error)) *Herald {
	h := &Herald{plan: p, on: on, now: now, complain: complain, queues: map[plans.Side]chan News{}}
	for _, side := range plans.Sides() {
		queue := make(chan News, rumours)
		h.queues[side] = queue
		go h.work(context.WithoutCancel(ctx), side, queue) // the last news is that the run is over
	}
	return h
}

// Tell lets both sets know.
func (h *Herald) Tell(n News) {
	for _, queue := range h.queues {
		select {
		case queue <- n:
		default:
		}
	}
}

// Close ends the Herald when what it was told has been written, and does not wait for that.
func (h *Herald) Close() {
	for _, queue := range h.queues {
		close(queue)
	}
}

func (h *Herald) work(ctx context.Context, side plans.Side, queue <-chan News) {
	var once sync.Once
	for n := range queue {
		if err := h.write(ctx, side, n); err != nil {
			once.Do(func() {
				h.complain(fmt.Errorf("Events about %s of the %s are not written, and the plan goes on without: %w", h.plan.On(side).Set(), side, err))
			})
		}
	}
}

func (h *Herald) write(ctx context.Context, side plans.Side, n News) (err error) {
	defer plans.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, attention)
	defer cancel()
	set, err := sets.World{Pair: clusters.Pair{Plan: h.plan, On: h.on}}.Set(ctx, side)
	if err != nil || set == nil { // not made yet, or cleaned up
		return err
	}
	return h.on[side].Create(ctx, eventAbout(h.plan.On(side), set, n, h.now()))
}

// eventAbout makes the Event. Who describes a set finds it by the set's UID.
func eventAbout(ref plans.Ref, set *appsv1.StatefulSet, n News, now time.Time) *corev1.Event {
	at := metav1.NewTime(now)
	kind := plans.NativeKind
	if ref.IsSlice() {
		kind = plans.SliceKind
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: fmt.Sprintf("%s.%x", ref.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: clusters.ResourceOf(ref).GroupVersion().String(), Kind: kind, Namespace: ref.Namespace, Name: ref.Name, UID: set.UID,
		},
		Type: n.Type, Reason: n.Reason, Message: n.Message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "stsmigrate"}, ReportingController: "stsmigrate",
	}
}
