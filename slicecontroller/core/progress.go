package core

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition Progressing, apart from those of a set that is being deleted or has a Fault.
// Reasons that Deployments have too mean the same here.
const (
	complete         = "Complete"
	paused           = "Paused"
	waiting          = "Waiting"
	failing          = "Failing"
	deadlineExceeded = "ProgressDeadlineExceeded"
	// goneBack is the reason for a set whose pods were rolled back to the current revision, and are not of
	// the template.
	goneBack = "RolledBack"
)

// stuckAfter is the default progress deadline: how long a set may make no progress. A new pod may take as
// long to become available before an enforced update counts as halted (ER-17).
const stuckAfter = 10 * time.Minute

// deadline returns how long the set may make no progress.
func (s *Set) deadline() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	return stuckAfter
}

// clock records when the set last made progress towards its spec, or began to differ from it. The time is in
// the status, so that another process continues to count. It is not recorded where it has no meaning: each pass
// would write the status.
func (ac *account) clock(waits string) {
	if waits == "" || ac.set.Paused || ac.set.Fault != nil || ac.set.DeletionTimestamp != nil {
		return
	}
	was, now := ac.set.Status, ac.status
	nearer := now.UpdatedReplicas > was.UpdatedReplicas || now.Replicas-now.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		now.ReadyReplicas > was.ReadyReplicas || now.AvailableReplicas > was.AvailableReplicas
	if was.Progressed == nil || ac.rested() || nearer || now.UpdateRevision != was.UpdateRevision {
		ac.status.Progressed = &metav1.Time{Time: ac.world.Now}
	}
}

// overdue returns when a set that makes no progress until then exceeds its deadline; zero for never. A
// terminating pod first has its grace period, and a ready pod first has its minReadySeconds.
func (ac *account) overdue() time.Time {
	if ac.status.Progressed == nil || ac.set.Paused || ac.set.DeletionTimestamp != nil {
		return time.Time{}
	}
	from := ac.status.Progressed.Time
	for _, r := range slices.Concat(ac.living, ac.condemned) {
		if terminating(r.Pod) && r.DeletionTimestamp.After(from) {
			from = r.DeletionTimestamp.Time
		}
		if at := ac.set.availableAt(r.Pod, ac.world.Now); at.After(from) {
			from = at
		}
	}
	return from.Add(ac.set.deadline())
}

// late reports whether the progress deadline has passed.
func (ac *account) late() bool {
	at := ac.overdue()
	return !at.IsZero() && !ac.world.Now.Before(at)
}

func (ac *account) progress(failed error) metav1.Condition {
	waits := ac.waitsFor()
	if failed != nil {
		waits = brief(failed)
	}
	ac.clock(waits)
	ac.waits = waits != ""
	c := metav1.Condition{Type: Progressing, Status: metav1.ConditionTrue, Reason: waiting, Message: waits}
	switch {
	case ac.set.DeletionTimestamp != nil:
		c.Reason, c.Message = "Deleting", "the set is being deleted"
	case ac.set.Fault != nil:
		c.Reason, c.Message = ac.set.Fault.Reason, ac.set.Fault.Message
	case ac.waits && ac.late():
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, deadlineExceeded, fmt.Sprintf("no progress for %s: %s", ac.set.deadline(), waits)
	case failed != nil:
		c.Reason = failing
	case ac.set.Paused:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, paused, "the update is paused: no pod is replaced for it"
		if ac.waits {
			c.Message += "; " + waits
		}
	case !ac.waits && ac.failed() != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, goneBack, ac.wayBack("")
	case !ac.waits:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, complete, fmt.Sprintf("%d of %d pods are available", ac.status.AvailableReplicas, ac.set.replicas())
	}
	return c
}
