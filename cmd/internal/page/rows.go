package page

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/api/v1alpha1"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// shownPlans makes rows of what is stored of the plans.
type shownPlans struct {
	seen               *reach.Cached
	namespace, context string
	now                func() time.Time
}

func (s *shownPlans) rows(ctx context.Context) ([]dashboard.Row, error) {
	entries, err := records.Entries(ctx, s.seen.Client, s.namespace, s.now)
	if err != nil {
		return nil, err
	}
	declared := map[client.ObjectKey]*records.Declared{}
	if s.seen.Declared {
		all, err := records.ListDeclared(ctx, s.seen.Client, client.InNamespace(s.namespace))
		if err != nil {
			return nil, fmt.Errorf("listing StatefulSetMigrations: %w", err)
		}
		for _, d := range all {
			declared[client.ObjectKeyFromObject(d.Object)] = d
		}
	}
	var out []dashboard.Row
	for _, e := range entries {
		at := client.ObjectKeyFromObject(records.NewDeclared(e.Namespace, e.Name))
		out = append(out, s.row(e, declared[at]))
		delete(declared, at)
	}
	for at, d := range declared {
		if !d.Over() {
			out = append(out, s.row(records.Entry{Listed: records.Listed{Namespace: at.Namespace, Name: at.Name, State: plans.StateUnreadable}}, d))
		}
	}
	return out, nil
}

// row returns the row of a plan. d is what is declared of it, or nil. Before a plan has begun, the status that the
// orchestrator shows is all that is known of its state.
func (s *shownPlans) row(e records.Entry, d *records.Declared) dashboard.Row {
	var status v1alpha1.StatefulSetMigrationStatus
	if d != nil {
		status = d.Status
	}
	if e.Journal == nil && status.State != "" {
		e.State, e.Reason, e.ReasonID = status.State, status.Message, "" // the message names its reason itself
	}
	r := dashboard.New(e.Namespace, e.Name, e.State, e.Plan, e.Journal)
	r.Reason, r.Attention = plans.Line(e.Reason), r.Attention || e.Journal == nil && meta.IsStatusConditionTrue(status.Conditions, "Stalled") || e.State.Approval()
	if status.State == e.State && status.Since != nil {
		at := status.Since.UTC()
		r.Since = &at
	}
	j := e.Journal
	if j == nil {
		r.Explained(string(e.ReasonID), reasons.Runbook(e.ReasonID))
		r.Next = s.command("status", e)
		return r
	}
	work := !j.Idle(e.Plan)
	if j.Detached {
		var spec *plans.Declaration
		if d != nil {
			spec = d.Spec
		}
		work = requests.Read(e.Plan, j, spec).Work
	}
	id, reason := j.OverdueID, j.Overdue
	if reason == "" || j.Blocked != "" {
		id, reason = j.Shown(e.Holder)
	}
	r.Explained(string(id), reasons.Runbook(id))
	r.Reason, r.Next = plans.Line(reason), engine.Advice(e.Plan, j, e.Holder, work, func(verb string) string { return s.command(verb, e) })
	if j.EndedAt != nil {
		r.Since = &j.EndedAt.Time
	}
	return r
}

func (s *shownPlans) command(verb string, e records.Entry) string {
	return fmt.Sprintf("`stsmigrate %s %s -n %s --context %s`", verb, e.Name, e.Namespace, s.context)
}
