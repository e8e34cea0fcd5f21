package core

import (
	"cmp"
	"fmt"
)

// RolledBack is the condition of a set whose update has failed: its pods are of the current revision again,
// or will be. The controller must not write the spec: a tool that keeps the spec elsewhere would apply it
// again, and the update would start over. So the template stays, and is ignored until it changes. The status
// has the failed revision BEFORE the first pod is rolled back, and only the status counts: another process
// continues from it.
const RolledBack = "RolledBack"

// failed returns the name of the template's revision if it is ignored because its update has failed, else
// "".
func (p *picture) failed() string {
	if p.target.Name == p.asked.Name && p.wayGone == "" {
		return ""
	}
	return p.asked.Name
}

// forces reports whether a pod is replaced whatever its health: the update is enforced, or is rolled back.
// Waiting for pods that the failed revision has broken would be in vain.
func (p *picture) forces() bool { return p.enforced() || p.failed() != "" }

const updateFailed = "UpdateFailed"

// wayBack returns the message that the template is ignored.
func (p *picture) wayBack(why string) string {
	return fmt.Sprintf("the update to %s has failed%s: pods are of %s until the template changes", p.asked.Name, why, cmp.Or(p.wayGone, p.current.Name))
}

// mayFail reports whether an existing pod is of the update and not available.
func (p *picture) mayFail(r replica) bool {
	return p.set.staged(r.ordinal) && !p.outdated(r) && p.set.down(r.Pod, p.world.Now)
}
