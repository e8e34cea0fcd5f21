package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// teller has the effects of a pass, and tells of them by Events.
type teller struct {
	*picture

	do Effects
}

func (t *teller) tellOfOrphan(pod *corev1.Pod) {
	t.do.Tell(Event{
		Type: corev1.EventTypeWarning, Reason: "OrphanOutOfRange", Related: pod, Once: string(pod.UID),
		Message: fmt.Sprintf("pod %s has no controller and matches this set, but its ordinal is not in the range: it is left unchanged", pod.Name),
	})
}

// tellFault records once, in an Event, why the spec cannot be acted on. A fault that may pass by itself is
// not recorded.
func (t *teller) tellFault(f Fault) {
	if f.Passing {
		return
	}
	t.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: f.Reason, Message: f.Message, Once: f.Message})
}

// tellOfForce records the state of a broken pod that is deleted (ER-6): after the deletion it cannot be
// examined.
func (t *teller) tellOfForce(r replica) {
	t.do.Tell(Event{
		Type: corev1.EventTypeWarning, Reason: "ForcedReplacement", Related: r.Pod,
		Message: fmt.Sprintf("pod %s of revision %s is not available (%s) and is replaced by one of %s", r.Name, revisionOf(r.Pod), condition(r.Pod), t.target.Name),
	})
}

// tellOf records an action on a pod in the words of the built-in controller (EV-1): dashboards and users
// search for them.
func (t *teller) tellOf(verb string, pod *corev1.Pod, err error) {
	e := Event{Type: corev1.EventTypeNormal, Reason: "Successful" + verb, Message: fmt.Sprintf("%s Pod %s in %s %s successful", verb, pod.Name, t.set.Kind.Kind, t.set.Name)}
	if err != nil {
		e.Type, e.Reason = corev1.EventTypeWarning, "Failed"+verb
		e.Message = fmt.Sprintf("%s Pod %s in %s %s failed error: %v", verb, pod.Name, t.set.Kind.Kind, t.set.Name, err)
	}
	t.do.Tell(e)
}

func (t *teller) tellOfClaim(c *corev1.PersistentVolumeClaim, pod *corev1.Pod, err error) {
	e := Event{
		Type: corev1.EventTypeNormal, Reason: "SuccessfulCreate",
		Message: fmt.Sprintf("Create Claim %s Pod %s in %s %s success", c.Name, pod.Name, t.set.Kind.Kind, t.set.Name),
	}
	if err != nil {
		e.Type, e.Reason = corev1.EventTypeWarning, "FailedCreate"
		e.Message = fmt.Sprintf("Create Claim %s for Pod %s in %s %s failed error: %v", c.Name, pod.Name, t.set.Kind.Kind, t.set.Name, err)
	}
	t.do.Tell(e)
}
