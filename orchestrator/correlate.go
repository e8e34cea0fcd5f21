package orchestrator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// tryingAgain and refused are reasons of events that repeat with changing messages for as long as an
// outage lasts. Every other event occurs once, and users wait for it.
const (
	tryingAgain = "TryingAgain"
	refused     = "Refused"
)

func chatty(e *corev1.Event) bool { return e.Reason == tryingAgain || e.Reason == refused }

// correlation lets all events through that matter. By default, recorders write 25 events about an object
// and then one in five minutes, for all reasons together. They also merge the events of one reason. The
// last event of a plan would be lost behind those of its outages or its ordinals.
func correlation() record.CorrelatorOptions {
	about := func(e *corev1.Event) string {
		key, _ := record.EventAggregatorByReasonFunc(e)
		if !chatty(e) {
			key += e.Message
		}
		return key
	}
	return record.CorrelatorOptions{
		SpamKeyFunc: about,
		KeyFunc:     func(e *corev1.Event) (string, string) { return about(e), e.Message },
	}
}
