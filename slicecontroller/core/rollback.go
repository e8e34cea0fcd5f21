package core

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolledBack is the condition of a set whose update has failed: its pods are of the current revision again,
// or will be. The controller must not write the spec: a tool that keeps the spec elsewhere would apply it
// again, and the update would start over. So the template stays, and is ignored until it changes. The status
// has the failed revision BEFORE the first pod is rolled back, and only the status counts: another process
// continues from it.
const RolledBack = "RolledBack"

// failed returns the name of the template's revision if it is ignored because its update has failed, else
// "".
func (p *pass) failed() string {
	if p.target.Name == p.asked.Name && p.wayGone == "" {
		return ""
	}
	return p.asked.Name
}

// forces reports whether a pod is replaced whatever its health: the update is enforced, or is rolled back.
// Waiting for pods that the failed revision has broken would be in vain.
func (p *pass) forces() bool { return p.enforced() || p.failed() != "" }

// giveUp decides that an update has failed and is rolled back. The next pass starts the rollback.
func (p *pass) giveUp(progress metav1.Condition) {
	why := ""
	switch {
	case p.failed() != "":
		if meta.FindStatusCondition(p.status.Told, RolledBack) == nil { // another writer removed it
			p.sayIf(RolledBack, updateFailed, p.wayBack(""))
		}
		return
	case !p.set.RollsBack, p.set.Paused, p.astray(), p.set.DeletionTimestamp != nil, p.asked.Name == p.current.Name, !p.toBlame():
	case progress.Reason == deadlineExceeded:
		why = " (" + progress.Message + ")"
	case p.enforced() && p.stuck():
		why = " (it has halted: pod " + p.canary().Name + " is not available: " + condition(p.canary().Pod) + ")"
	}
	if why == "" {
		meta.RemoveStatusCondition(&p.status.Told, RolledBack)
		return
	}
	p.status.Failed, p.status.Progressed = p.asked.Name, &metav1.Time{Time: p.world.Now}
	p.sayIf(RolledBack, updateFailed, p.wayBack(why))
	p.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: RolledBack, Message: p.wayBack(why)})
}

const updateFailed = "UpdateFailed"

// wayBack returns the message that the template is ignored.
func (p *pass) wayBack(why string) string {
	return fmt.Sprintf("the update to %s has failed%s: pods are of %s until the template changes", p.asked.Name, why, cmp.Or(p.wayGone, p.current.Name))
}

// toBlame reports whether a pod that the update has created, or will create, does not become available. The
// update is not to blame for an unavailable pod of the old revision. The deadline may have passed for such a
// pod: then a new pod that was just created, is not ready for a moment, or waits for its turn, is no failure either.
func (p *pass) toBlame() bool {
	held := false // in order, no pod is created behind one that is missing or not available
	for o := range p.set.ordinals() {
		switch r := p.at(o); {
		case p.set.staged(o) && !created(r.Pod) && p.made == 0 && !held:
			return true
		case created(r.Pod) && p.mayFail(r) && (terminating(r.Pod) || p.hopeless(r.Pod)):
			return true
		case p.set.ordered() && (!created(r.Pod) || p.set.down(r.Pod, p.world.Now) && !p.exempt(r)):
			held = true
		}
	}
	return false
}

// mayFail reports whether an existing pod is of the update and not available.
func (p *pass) mayFail(r replica) bool {
	return p.set.staged(r.ordinal) && !p.outdated(r) && p.set.down(r.Pod, p.world.Now)
}
