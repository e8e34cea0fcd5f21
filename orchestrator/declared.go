package orchestrator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// said returns what is declared of a plan, and by whom. An object that cannot be read declares nothing (nil), and
// neither does one that is being deleted before its plan was begun.
func (w *Setup) said(j *journal.Journal, d *records.Declared) *plans.Declaration {
	if d == nil || d.Spec == nil || d.Object.GetDeletionTimestamp() != nil && (j == nil || j.Epoch == 0) {
		return nil
	}
	spec := *d.Spec
	spec.By = map[string]string{}
	for _, field := range []string{plans.ApprovalField, plans.DirectionField, plans.RequestField, plans.PausedField} {
		spec.By[field] = d.Requester(field, w.Requesters)
	}
	return &spec
}

// declared reads the object of a plan from the cache; nil if there is none, or none that counts.
func (w *Setup) declared(ctx context.Context, plan string) (*records.Declared, error) {
	if !w.serves(plan) {
		return nil, nil
	}
	return records.ReadDeclared(ctx, entire(w), w.Namespace, plan)
}

// approver returns who has approved a plan, if admission writes that down: what a client claims counts for nothing.
func (w *Setup) approver(d *records.Declared) string {
	if d == nil || !w.Requesters {
		return ""
	}
	return d.Object.GetAnnotations()[records.RequesterAnnotation(plans.ApprovalField)]
}

// hear records a pause and the refusal of a request in the journal: neither needs a process that takes
// the plan over. The object is read AFTER the journal that is replaced. Of two processes, the one with
// the older object therefore fails.
func (h *Orchestrator) hear(ctx context.Context, p *plans.Plan, j *journal.Journal, d *records.Declared) (*journal.Journal, error) {
	news := func(j *journal.Journal, d *records.Declared) bool {
		s := h.said(j, d)
		if !j.Detached || s == nil || s.ApprovedHash != p.Hash {
			return false
		}
		asked := requests.Read(p, j, s)
		pause := s.Paused != j.Observed.Paused && j.Outcome == ""
		if refuse := asked.Refuse; refuse != nil {
			refuse.Paused = j.Observed.Paused
			j.Observed = *refuse
			j.Timeline.Record(h.Now(), journal.Event{Kind: journal.Requested, ID: asked.RefusedID, By: asked.By, What: "refused: " + asked.Refused})
		}
		if pause {
			j.Paused, j.Observed.Paused = s.Paused, s.Paused
			what := map[bool]string{true: "pause", false: "no pause any more"}[s.Paused]
			j.Timeline.Record(h.Now(), journal.Event{Kind: journal.Requested, By: s.Requesters(plans.PausedField), What: what})
		}
		return asked.Refuse != nil || pause
	}
	if trial := *j; !news(&trial, d) {
		return j, nil
	}
	out := j
	err := records.NewStore(h.Live, h.Namespace, p.Name).Change(ctx, p, func(now *journal.Journal) error {
		d, err := records.ReadDeclared(ctx, h.Live, h.Namespace, p.Name)
		if err == nil {
			news(now, d)
		}
		out = now
		return err
	})
	return out, err
}

// still returns errOvertaken if the run may not act for the journal as it is now.
func (r *run) still(ctx context.Context, j *journal.Journal) error {
	d, err := records.ReadDeclared(ctx, r.orchestrator.Live, r.orchestrator.Namespace, r.plan.Name)
	if err != nil {
		return err
	}
	if what, asked := actionFor(r.plan, j, r.orchestrator.said(j, d)); what != r.what || !asked.Command.Is(r.command) {
		return errOvertaken
	}
	if j.Epoch > 0 {
		return nil
	}
	guarded, err := r.orchestrator.guarded(ctx, r.plan)
	if err == nil && !guarded {
		return errOvertaken // another client deletes it
	}
	return err
}

// opened creates the journal of a plan that is approved and was never begun.
func (h *Orchestrator) opened(ctx context.Context, p *plans.Plan, d *records.Declared) (reconcile.Result, error) {
	at := standing{name: p.Name, declared: d, plan: p, state: plans.StatePlanReady}
	spec := h.said(nil, d)
	if spec == nil || spec.ApprovedHash != p.Hash {
		return h.showing(ctx, at.unapproved(), 0)
	}
	var record corev1.ConfigMap
	if err := there(&h.Setup).Get(ctx, client.ObjectKeyFromObject(h.object(p)), &record); err != nil {
		return reconcile.Result{}, err
	}
	if d.Begun(p, &record) {
		at.wrong = reasons.Because(reasons.NoJournal, fmt.Errorf("plan %s has been begun, and its journal, ConfigMap %s-journal, is gone: restore it from a backup, or `stsmigrate recover` it; nothing is written without it", p.Name, record.Name))
		return h.showing(ctx, at, 0)
	}
	j := journal.New(p)
	j.Detached, j.Paused = true, spec.Paused
	j.Observed = plans.Observed{Direction: plans.Move, Paused: spec.Paused}
	j.Timeline.Record(h.Now(), journal.Event{Kind: journal.Requested, By: spec.Requesters(plans.ApprovalField), What: "approved the plan"})
	if err := records.NewStore(h.Live, h.Namespace, p.Name).Create(ctx, p, j); err != nil {
		at.wrong = err
		return h.showing(ctx, at, mirrorRetryInterval)
	}
	return reconcile.Result{}, nil // its journal requeues the plan
}
