package simulation

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/plans"
)

// S19: every answer on which an ordinal goes down has an age.

// seat is an ordinal on a side.
type seat struct {
	side    plans.Side
	ordinal int32
}

// passes counts the changes of the world, and notes with which of them an ordinal became unavailable.
func (w *world) passes() {
	w.changes++
	if len(w.plan.Gates) == 0 {
		return // nobody is asked
	}
	now := map[seat]types.UID{}
	for _, side := range plans.Sides() {
		for o := range w.plan.Ordinals().All() {
			if pod := w.pod(side, o); ready(pod) {
				now[seat{side, o}] = pod.UID
			}
		}
	}
	for at, uid := range w.served {
		if now[at] != uid {
			w.fell, w.fallen = w.changes, at
		}
	}
	w.served = now
}

// sends notes what a process writes that ages the answers it has, or asks anew.
func (w *world) sends(r *process, o client.Object) {
	switch o := o.(type) {
	case *policyv1.PodDisruptionBudget:
		w.budgeted = w.changes + 1
	case *batchv1.Job:
		if o.Spec.Suspend != nil && !*o.Spec.Suspend {
			w.app.begun[o.UID] = consent{r, w.app.clock, w.changes}
		}
	}
}

// mostAge is how old the last answer may be, by a clock that goes on whenever anybody reads it.
const mostAge = gates.Validity + 20*time.Second

// consented is S19 for the gates, at the only moment that counts: an ordinal that serves is taken out of a range. The
// process that does it has asked each of them itself, the last answer was yes, and since it was asked no ordinal has
// become unavailable and no budget was written.
func (w *world) consented(r *process, before, after plans.Slice, side plans.Side) {
	if r.pause != nil || len(w.plan.GatesAt(plans.Quiesce)) == 0 || w.journal.SkipGates > 0 && w.journal.SkipGates >= w.journal.Done {
		return
	}
	last := time.Time{}
	for o := range before.All() {
		if after.Has(o) || !ready(w.pod(side, o)) {
			continue
		}
		for _, g := range w.plan.GatesAt(plans.Quiesce) {
			what := fmt.Sprintf("%s %s %s", g.Name, w.plan.Pod(side, o), side)
			if at := w.lastYes(r, o, what); at.After(last) {
				last = at
			}
		}
	}
	if age := w.app.clock.Sub(last); !last.IsZero() && age > mostAge {
		w.fail("S19", "%s leave the %s, and the last answer of the application is %s old", before, side, age)
	}
}

// lastYes is S19 for one question about an ordinal that is taken down. It returns when the last yes was heard.
func (w *world) lastYes(r *process, o int32, what string) time.Time {
	heard, asked := w.app.heard[what]
	switch {
	case !asked:
		w.fail("S19", "ordinal %d is taken down, and %q was never answered with yes", o, what)
	case !w.app.said[what]:
		w.fail("S19", "ordinal %d is taken down, and the last answer to %q was no", o, what)
	case heard.to != r:
		w.fail("S19", "ordinal %d is taken down, and another process has asked %q", o, what)
	case heard.since < w.fell && r.knows(w.fallen.ordinal):
		w.fail("S19", "ordinal %d is taken down, and ordinal %d of the %s became unavailable since %q was asked", o, w.fallen.ordinal, w.fallen.side, what)
	case heard.since < w.budgeted:
		w.fail("S19", "ordinal %d is taken down, and a budget was written since %q was asked", o, what)
	}
	return heard.at
}

// blips makes an ordinal unavailable and available again, with the same pod.
func (w *world) blips(side plans.Side, o int32) {
	for _, is := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		next := clone(w.pod(side, o))
		next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
		w.on[side].put(next)
		w.check()
	}
}

// blinks makes an ordinal unavailable and available again within the second since which it was available, so that its pod
// says nothing of it. seen is called in between.
func (w *world) blinks(side plans.Side, o int32, seen func()) {
	before := w.pod(side, o).Status
	next := clone(w.pod(side, o))
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.on[side].put(next)
	w.check()
	seen()
	next = clone(w.pod(side, o))
	next.Status = *before.DeepCopy()
	w.on[side].put(next)
	w.check()
}
