package slicecontroller

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// relatedTo is the annotation that carries the related object of an Event (ER-6) through the recorder,
// which has no field for it, to the sink. It is not stored.
const relatedTo = "apps.stsmigrate.dev/related-to"

// tell records an Event about a set.
func tell(with record.EventRecorder, scheme *runtime.Scheme, set runtime.Object, about core.Event) {
	notes := map[string]string{}
	if about.Related != nil {
		if to, err := reference.GetReference(scheme, about.Related); err == nil {
			if raw, err := json.Marshal(to); err == nil {
				notes[relatedTo] = string(raw)
			}
		}
	}
	with.AnnotatedEventf(set, notes, about.Type, about.Reason, "%s", about.Message)
}

// sink stores Events with their related objects.
type sink struct{ record.EventSink }

// Create implements record.EventSink.
func (s sink) Create(e *corev1.Event) (*corev1.Event, error) {
	raw, found := e.Annotations[relatedTo]
	if !found {
		return s.EventSink.Create(e)
	}
	e = e.DeepCopy()
	delete(e.Annotations, relatedTo)
	var to corev1.ObjectReference
	if json.Unmarshal([]byte(raw), &to) == nil {
		e.Related = &to
	}
	return s.EventSink.Create(e)
}
