package orchestrator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// tryingAgain and refused are told again and again, in words that change, for as long as an outage lasts. What else
// happens to a plan is told once each, and somebody waits for it.
const (
	tryingAgain = "TryingAgain"
	refused     = "Refused"
)

func chatty(e *corev1.Event) bool { return e.Reason == tryingAgain || e.Reason == refused }

// correlation lets through all that matters. By themselves recorders write 25 events about an object and then one in five
// minutes, of all reasons together, and put those of one reason into one: the last word on a plan would be lost
// behind its outages, or behind its ordinals.
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
