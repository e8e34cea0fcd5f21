package engine

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

// The clock of a step says when a wait has lasted for too long. It starts anew with every progress: with
// another step or reason, and when a pod of the wave has come or gone. It does not run while nobody
// answers, and starts anew when somebody does: the controllers of a cluster come back with its API server.

// kubeletMargin is what a pod may take, beside its grace period, to be gone.
const kubeletMargin = 5 * time.Minute

// restart starts the clock of the step that was last reported.
func (r *run) restart() {
	r.expired, r.stalled = false, false
	if r.last.Step.Op.Gated() || r.last.Queued {
		r.deadline.Stop() // gates have timeouts of their own, and a queue takes as long as it takes
		return
	}
	r.deadline.Reset(r.timeout())
}

// timeout is how long the step may wait. Pods that are told to end have the time that they ask for.
func (r *run) timeout() time.Duration {
	if op := r.last.Step.Op; op == plans.Shrink || op == plans.Vacate {
		return max(r.StepTimeout, longestGrace(r.reads.Objects)+kubeletMargin)
	}
	return r.StepTimeout
}

// longestGrace is the longest time that one of the pods among these objects may take to end.
func longestGrace(seen map[clusters.ObjectKey]client.Object) time.Duration {
	var longest int64
	for _, o := range seen {
		var asked []*int64
		switch o := o.(type) {
		case *corev1.Pod:
			asked = []*int64{o.Spec.TerminationGracePeriodSeconds, o.DeletionGracePeriodSeconds}
		case *appsv1.StatefulSet:
			asked = []*int64{o.Spec.Template.Spec.TerminationGracePeriodSeconds}
		}
		for _, seconds := range asked {
			if seconds != nil {
				longest = max(longest, *seconds)
			}
		}
	}
	return time.Duration(longest) * time.Second
}

// turnover says whether a pod of the wave has come or gone.
func (r *run) turnover(news clusters.Changes) bool {
	for t, c := range news.Of {
		if !c.Turned || t.Kind != "Pod" {
			continue
		}
		for o := range r.last.Step.Ordinals.All() {
			if t.Name == r.plan.Pod(o) {
				return true
			}
		}
	}
	return false
}

// late is what becomes of a wait that has lasted for too long. With nothing in flight the plan is held,
// with the budgets open. A wave in flight is told, and looked at for as long as it takes: its pod may
// come up while everybody sleeps.
func (r *run) late(ctx context.Context, p Progress) (Progress, error) {
	if err := r.recall(ctx); err != nil {
		return p, err
	}
	if r.journal.Epoch != r.epoch {
		return p, nil // the next pass says so
	}
	if !inFlight(r.journal, p.Step) {
		r.ease(ctx)
		return r.Block(ctx, p.Step, fmt.Sprintf("%s (waited %s, --step-timeout; `resume` waits again, `abort` rolls back)", p.Reason, r.timeout()))
	}
	r.journal.Overdue = fmt.Sprintf("%s (for more than %s)", p.Reason, r.timeout())
	told := p
	told.Overdue, told.Reason = true, "overdue: "+r.journal.Overdue+"; it goes on as soon as that is over; if that will never be, `abort` rolls back (end a command that carries the plan out first)"
	err := r.save(ctx)
	if r.journal == nil { // it is read again, and that is tried again
		return p, writes.IgnoreAnswers(err)
	}
	r.expired = false // until there is progress
	r.last.Overdue, r.last.Left = true, r.journal.Left()
	told.Again, told.Left = 0, r.last.Left
	r.Report(told, nil)
	return p, nil
}

// inFlight says whether ordinals may be on neither side before the step is done.
func inFlight(j *plans.Journal, step plans.Step) bool {
	switch step.Op {
	case plans.Vacate, plans.Release, plans.Reserve, plans.Claim, plans.Grow:
		return true
	case plans.Shrink:
		return step.Seq <= j.Begun || j.Reversed(step)
	case plans.Tighten, plans.Quiesce:
		return j.Reversed(step)
	default:
		return false
	}
}

// ease opens the budgets, and tries that a few times: whoever cannot has come to an end all the same.
func (r *run) ease(ctx context.Context) {
	for range maxPermanentFailures {
		if r.eases(ctx) {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// eases opens the budgets once, and remembers whether that is still to be done.
func (r *run) eases(ctx context.Context) bool {
	waits, err := r.Engine.ease(ctx)
	if err != nil {
		r.Report(r.last, err)
	}
	r.tight = err != nil || waits != ""
	return !r.tight
}
