package sets

import (
	"context"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// failedCreate is the reason of the Events with which the controller of a set says that it could not create a pod or a
// claim.
const failedCreate = "FailedCreate"

// unmadeAgain is when the controller is asked again.
const unmadeAgain = 5 * time.Second

// usage is what a refusal by a quota says of everything that counts against it. It changes while the wait goes on.
var usage = regexp.MustCompile(`, used: .*`)

// unmade returns why the controller of a set does not create a pod, in the words of its newest Event, or "". Only the
// controller knows it, and nothing depends on it: a process that may not list Events learns nothing.
func (w arrival) unmade(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) string {
	var all corev1.EventList
	if w.On[side].List(ctx, &all, client.InNamespace(set.Namespace), client.MatchingFields{"involvedObject.name": set.Name, "reason": failedCreate}) != nil {
		return ""
	}
	newest, why := time.Time{}, ""
	for _, e := range all.Items {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if e.InvolvedObject.UID == set.UID && e.Reason == failedCreate && !at.Before(newest) {
			newest, why = at, e.Message
		}
	}
	return usage.ReplaceAllString(plans.Line(why), "")
}
