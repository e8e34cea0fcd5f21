package hub

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// object is the ConfigMap of a plan, for events about it.
func (h *Hub) object(p *plans.Plan) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: named(h.Namespace, "stsmigrate-"+p.Name)}
	o.APIVersion, o.Kind = "v1", "ConfigMap"
	h.lock.Lock()
	defer h.lock.Unlock()
	o.UID = h.plans[p.Name].uid
	return o
}

// report tells of the progress of a run.
func (r *run) report(e *orchestrator.Engine, p orchestrator.Progress, err error) {
	l := log.Log.WithName("plan").WithValues("plan", r.plan.Name)
	step := ""
	if e != nil {
		step = e.StepOf(p.Step)
	}
	switch {
	case err != nil:
		r.hub.gauges.errors.WithLabelValues(r.plan.Name).Inc()
		if text := err.Error(); r.hub.isNews(r.plan.Name, text) {
			l.Info("will try again", "step", step, "error", text)
			r.hub.Events.Event(r.hub.object(r.plan), corev1.EventTypeWarning, "TryingAgain", text)
		}
		return
	case p.Kind == orchestrator.Wrote:
		l.Info("wrote", "step", step, "what", p.Reason)
	case p.Kind == orchestrator.Waiting:
		l.V(1).Info("waiting", "step", step, "for", p.Reason)
	case p.Kind == orchestrator.Advanced && p.Step.Op == plans.Grow:
		r.hub.gauges.arrived.WithLabelValues(string(p.Step.To())).Add(float64(p.Step.Ordinals.Replicas))
		if p.Took != nil {
			for span, took := range *p.Took {
				r.hub.gauges.downtime.WithLabelValues(string(span)).Observe(took.Seconds())
			}
		}
		l.Info("available", "pods", r.plan.Pods(p.Step.Ordinals), "on", p.Step.To())
		r.hub.Events.Eventf(r.hub.object(r.plan), corev1.EventTypeNormal, "OrdinalArrived", "%s available on the %s (%s)", r.plan.Pods(p.Step.Ordinals), p.Step.To(), r.plan.On(p.Step.To()))
	}
	r.hub.isNews(r.plan.Name, "")
}

// ended tells how a run has ended.
func (h *Hub) ended(p *plans.Plan, how orchestrator.Progress) {
	switch how.Kind {
	case orchestrator.Held:
		h.held(p, how.Reason)
	case orchestrator.Paused:
		h.Events.Event(h.object(p), corev1.EventTypeNormal, "Paused", how.Reason)
	case orchestrator.Finished:
		h.Events.Eventf(h.object(p), corev1.EventTypeNormal, string(how.Outcome), "plan %s: %s -> %s", p.Name, p.Source, p.Destination)
	default:
	}
	log.Log.WithName("plan").Info("ended", "plan", p.Name, "how", how.Kind, "outcome", how.Outcome, "reason", how.Reason)
}

func (h *Hub) held(p *plans.Plan, reason string) {
	h.Events.Event(h.object(p), corev1.EventTypeWarning, "Held", reason)
}

// unreadable tells of a plan or journal that cannot be read; it is left alone.
func (h *Hub) unreadable(name string, err error) error {
	return fmt.Errorf("plan %s: %w", name, err)
}

// state is that of a plan in a word.
func (h *Hub) state(ctx context.Context, p *plans.Plan, j *plans.Journal) string {
	holder, err := orchestrator.NewStore(h.Cached, h.Namespace, p.Name).Holder(ctx, h.Now)
	if err != nil {
		holder = ""
	}
	return orchestrator.State(p, j, holder)
}
