package slicecontroller

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// stored receives the Events that reach the API server.
type stored struct {
	record.EventSink
	events chan *corev1.Event
}

func (s stored) Create(e *corev1.Event) (*corev1.Event, error) {
	s.events <- e
	return e, nil
}

// An Event about a pod of a set names the pod, so that the Event is found by the pod (ER-6).
func TestEventsNameWhatTheyAreRelatedTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := record.NewBroadcaster(record.WithContext(ctx))
	api := stored{events: make(chan *corev1.Event, 2)}
	b.StartRecordingToSink(sink{api})
	r := b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "statefulset-controller"})
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}
	tell(r, scheme.Scheme, set, core.Event{Type: "Warning", Reason: "ForcedReplacement", Message: "100% of it", Related: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2", UID: "two"}}})
	e := <-api.events
	if e.InvolvedObject.Name != "web" || e.Message != "100% of it" || e.Related == nil || *e.Related != (corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-2", UID: "two"}) || len(e.Annotations) > 0 {
		t.Errorf("%+v", e)
	}
	tell(r, scheme.Scheme, set, core.Event{Type: "Normal", Reason: "EnforcedRollingUpdateStarted", Message: "it has begun"})
	if e := <-api.events; e.Related != nil || len(e.Annotations) > 0 {
		t.Errorf("one that is about the set alone: %+v", e)
	}
}
