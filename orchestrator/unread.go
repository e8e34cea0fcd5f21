package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// unreadableRecheck is the pause before such a record is read again, even if it has not changed.
const unreadableRecheck = time.Minute

func isUnreadable(err error) bool {
	return errors.As(err, new(records.ErrUnreadable)) || errors.As(err, new(plans.Panic))
}

// unread reports a plan whose record this process cannot read, and otherwise leaves it unchanged: its
// run ends. Metrics and status keep what else is known of the plan, such as ordinals on neither side.
// Where another process carries the plan out, perhaps of a newer release, there is nothing to report.
func (h *Orchestrator) unread(ctx context.Context, name string, why error) (later reconcile.Result, err error) {
	defer plans.RecoverPanic(&err)
	later = reconcile.Result{RequeueAfter: unreadableRecheck}
	h.lock.Lock()
	s := h.state(name)
	s.end()
	s.tries = nil
	h.waitsNoMore(s) // it begins only when it can be read, and must keep no room from others until then
	h.lock.Unlock()
	holder, _, err := h.holder(ctx, h.Cached, name)
	if err != nil {
		return later, err
	}
	if holder != "" && holder != h.Holder {
		h.gauges.stateless(name)
		return later, nil
	}
	h.gauges.turn(name, plans.StateUnreadable)
	if h.isNews(name, aboutRecord, why.Error()) {
		if errors.As(why, new(plans.Panic)) {
			h.gauges.panics.WithLabelValues().Inc()
		}
		log.Log.WithName("plan").Error(why, "the plan cannot be read, and is left alone", "plan", name)
		if err := h.tellUnread(ctx, name, why); err != nil {
			return later, err
		}
	}
	d, err := h.declared(ctx, name)
	if err != nil {
		return later, err
	}
	return h.showing(ctx, standing{name: name, declared: d, state: plans.StateUnreadable, wrong: why}, unreadableRecheck)
}

// tellUnread writes an event on the ConfigMap that cannot be read.
func (w *Setup) tellUnread(ctx context.Context, name string, why error) error {
	at := client.ObjectKey{Namespace: w.Namespace, Name: "stsmigrate-" + name}
	var e records.ErrUnreadable
	if errors.As(why, &e) {
		at = e.Name
	}
	var cm corev1.ConfigMap
	if err := there(w).Get(ctx, at, &cm); err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", at, err)
	}
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	w.Events.Event(&cm, corev1.EventTypeWarning, "Unreadable", why.Error())
	return nil
}
