package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// unplaced returns how many ordinals wait for their places.
func unplaced(p engine.Progress) int32 {
	if p.Kind != engine.Waiting || p.ID != reasons.PlaceNotReady {
		return 0
	}
	return p.Step.Ordinals.Replicas
}

// reportError writes why a run tries again.
func (r *run) reportError(l logr.Logger, err error) {
	r.orchestrator.gauges.errors.WithLabelValues(r.plan.Name).Inc()
	if errors.As(err, new(plans.Panic)) {
		r.orchestrator.gauges.panics.WithLabelValues().Inc()
	}
	if text := records.Brief(err.Error()); r.orchestrator.isNews(r.plan.Name, aboutRun, text) {
		l.Info("will try again", "error", text)
		r.orchestrator.Events.Event(r.orchestrator.object(r.plan), corev1.EventTypeWarning, tryingAgain, text)
	}
}

// report writes the progress of a run to log, metrics, traces and events.
func (r *run) report(ctx context.Context, e *engine.Engine, p engine.Progress, err error) {
	l := log.Log.WithName("plan").WithValues("plan", r.plan.Name)
	step := ""
	if e != nil {
		step = e.StepOf(p.Step)
	}
	if err != nil {
		r.reportError(l.WithValues("step", step), err)
		return
	}
	r.orchestrator.gauges.away(r.plan.Name, p.Left)
	r.orchestrator.gauges.waits(r.plan.Name, unplaced(p), p.Unreached)
	r.turns(&r.flies, !p.Left.IsZero())
	switch {
	case p.Kind == engine.Blocked: // and the run looks on
		r.turns(&r.looksOn, true)
		l.Info("blocked, and looks on", "step", step, "reason", p.Reason, "id", p.ID)
		r.tell(corev1.EventTypeWarning, "Blocked", reasons.Tagged(p.ID, p.Reason))
	case p.Kind == engine.Continued:
		r.turns(&r.looksOn, false)
		l.Info("goes on", "step", step, "reason", p.Reason)
		r.tell(corev1.EventTypeNormal, "Continued", p.Reason)
	case p.Kind == engine.Wrote:
		l.Info("wrote", "step", step, "what", p.Reason)
	case p.Overdue:
		l.Info("overdue", "step", step, "for", p.Reason, "id", p.ID)
		r.tell(corev1.EventTypeWarning, "Overdue", reasons.Tagged(p.ID, p.Reason))
	case p.Kind == engine.Waiting:
		l.V(1).Info("waiting", "step", step, "for", p.Reason, "id", p.ID)
	case p.Kind == engine.Advanced && p.Step.Op.Enters():
		r.orchestrator.gauges.done.arrived.WithLabelValues(string(p.Step.To())).Add(float64(p.Step.Ordinals.Replicas))
		if p.Took != nil {
			for span, took := range *p.Took {
				r.orchestrator.gauges.downtime.WithLabelValues(string(span)).Observe(took.Seconds())
			}
			r.orchestrator.spans.tell(ctx, r.plan, waveSpans(r.plan, p.Step, *p.Took, r.orchestrator.Now())...)
		}
		elsewhere := ""
		if p.Came != nil {
			for _, one := range p.Came.Placed {
				r.orchestrator.gauges.places.took.WithLabelValues(string(r.plan.Placeholder.Proof)).Observe(one.Seconds)
			}
			elsewhere = p.Came.Elsewhere
		}
		l.Info("available", "pods", r.plan.Pods(p.Step.Ordinals), "on", p.Step.To(), "elsewhere", elsewhere)
		r.tell(corev1.EventTypeNormal, "OrdinalArrived", fmt.Sprintf("%s available on the %s (%s)", r.plan.Pods(p.Step.Ordinals), p.Step.To(), r.plan.On(p.Step.To())))
	}
	r.orchestrator.isNews(r.plan.Name, aboutRun, "")
}

// ended reports how a run has ended.
func (r *run) ended(ctx context.Context, how engine.Progress) {
	r.orchestrator.gauges.waits(r.plan.Name, 0, 0)
	switch {
	case how.Overtaken: // its new holder reports it
	case how.Kind == engine.Blocked:
		r.tell(corev1.EventTypeWarning, "Blocked", reasons.Tagged(how.ID, how.Reason))
	case how.Kind == engine.Paused:
		r.tell(corev1.EventTypeNormal, "Paused", how.Reason)
	case how.Kind == engine.Finished:
		r.tell(corev1.EventTypeNormal, string(how.Outcome), fmt.Sprintf("plan %s: %s -> %s", r.plan.Name, r.plan.Source, r.plan.Destination))
		if how.Outcome == plans.Finalized || how.Outcome == plans.Aborted {
			r.orchestrator.gauges.done.ended.WithLabelValues(string(how.Outcome)).Inc()
		}
		if how.Outcome == plans.Moved || how.Outcome == plans.Aborted {
			now := r.orchestrator.Now()
			r.orchestrator.spans.tell(ctx, r.plan, planSpan(r.plan, how.Outcome, r.born(ctx, now), now))
		}
	}
	log.Log.WithName("plan").Info("ended", "plan", r.plan.Name, "how", how.Kind, "outcome", how.Outcome, "reason", how.Reason, "id", how.ID)
}

// born returns when the plan was created, or now if that is not known.
func (r *run) born(ctx context.Context, now time.Time) time.Time {
	var cm corev1.ConfigMap
	if there(&r.orchestrator.Setup).Get(ctx, client.ObjectKeyFromObject(r.orchestrator.object(r.plan)), &cm) != nil || cm.CreationTimestamp.IsZero() {
		return now
	}
	return cm.CreationTimestamp.Time
}

// tell writes an event on the plan and on both sets.
func (r *run) tell(kind, reason, message string) {
	message = records.Brief(message)
	r.orchestrator.Events.Event(r.orchestrator.object(r.plan), kind, reason, message)
	if r.events != nil {
		r.events.Write(runner.Event{Type: kind, Reason: reason, Message: fmt.Sprintf("%s (plan %s/%s)", message, r.orchestrator.Namespace, r.plan.Name)})
	}
}
