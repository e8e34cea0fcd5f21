package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolledBack says that an update has failed and that pods are of the current revision again, or are to be. The spec is not
// the controller's to write: whoever keeps it elsewhere would write it again, and the update would begin anew. So the template
// stays, and is not acted on until it changes. The status has the revision that failed from before the first pod goes back,
// and only that counts: another process goes on from there.
const RolledBack = "RolledBack"

// failed is the revision of the template if it is not acted on because its update has failed; else "".
func (p *pass) failed() string {
	if p.target.Name == p.asked.Name {
		return ""
	}
	return p.asked.Name
}

// forces says that nobody waits for the health of a pod that is to be replaced: the update is enforced, or goes back. What the
// failed revision has broken would be waited for in vain.
func (p *pass) forces() bool { return p.enforced() || p.failed() != "" }

// giveUp decides that an update has failed and goes back. It is done from the next pass on.
func (p *pass) giveUp(progress metav1.Condition) {
	why := ""
	switch {
	case p.failed() != "":
		if meta.FindStatusCondition(p.status.Told, RolledBack) == nil { // somebody has taken it off
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

// wayBack says that the template is not acted on.
func (p *pass) wayBack(why string) string {
	return fmt.Sprintf("the update to %s has failed%s: pods are of %s until the template changes", p.asked.Name, why, p.current.Name)
}

// toBlame says whether a pod that the update has brought, or is to bring, is not available. That an old one is not is no
// fault of it.
func (p *pass) toBlame() bool {
	for o := p.set.start(); p.set.has(o); o++ {
		if r := p.at(o); p.set.staged(o) && p.set.down(r.Pod, p.world.Now) && (!created(r.Pod) || !p.outdated(r)) {
			return true
		}
	}
	return false
}
