package core

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
func (p *pass) clock(waits string) {
	if waits == "" || p.set.Paused || p.set.Fault != nil || p.set.DeletionTimestamp != nil {
		return
	}
	was, now := p.set.Status, p.status
	nearer := now.UpdatedReplicas > was.UpdatedReplicas || now.Replicas-now.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		now.ReadyReplicas > was.ReadyReplicas || now.AvailableReplicas > was.AvailableReplicas
	if was.Progressed == nil || p.rested() || nearer || now.UpdateRevision != was.UpdateRevision {
		p.status.Progressed = &metav1.Time{Time: p.world.Now}
	}
}

// rested reports whether nothing was waited for when the set was last reconciled.
func (p *pass) rested() bool {
	c := meta.FindStatusCondition(p.set.Status.Told, Progressing)
	return c == nil || !slices.Contains([]string{waiting, failing, deadlineExceeded}, c.Reason)
}

// overdue returns when a set that makes no progress until then exceeds its deadline; zero for never. A
// terminating pod first has its grace period, and a ready pod first has its minReadySeconds.
func (p *pass) overdue() time.Time {
	if p.status.Progressed == nil || p.set.Paused || p.set.DeletionTimestamp != nil {
		return time.Time{}
	}
	from := p.status.Progressed.Time
	for _, r := range slices.Concat(p.living, p.condemned) {
		if terminating(r.Pod) && r.DeletionTimestamp.After(from) {
			from = r.DeletionTimestamp.Time
		}
		if at := p.set.availableAt(r.Pod, p.world.Now); at.After(from) {
			from = at
		}
	}
	return from.Add(p.set.deadline())
}

// late reports whether the progress deadline has passed.
func (p *pass) late() bool {
	at := p.overdue()
	return !at.IsZero() && !p.world.Now.Before(at)
}

func (p *pass) progress(failed error) metav1.Condition {
	waits := p.waitsFor()
	if failed != nil {
		waits = brief(failed)
	}
	p.clock(waits)
	p.waits = waits != ""
	c := metav1.Condition{Type: Progressing, Status: metav1.ConditionTrue, Reason: waiting, Message: waits}
	switch {
	case p.set.DeletionTimestamp != nil:
		c.Reason, c.Message = "Deleting", "the set is being deleted"
	case p.set.Fault != nil:
		c.Reason, c.Message = p.set.Fault.Reason, p.set.Fault.Message
	case p.waits && p.late():
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, deadlineExceeded, fmt.Sprintf("no progress for %s: %s", p.set.deadline(), waits)
	case failed != nil:
		c.Reason = failing
	case p.set.Paused:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, paused, "the update is paused: no pod is replaced for it"
		if p.waits {
			c.Message += "; " + waits
		}
	case !p.waits && p.failed() != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, goneBack, p.wayBack("")
	case !p.waits:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, complete, fmt.Sprintf("%d of %d pods are available", p.status.AvailableReplicas, p.set.replicas())
	}
	return c
}
