package page

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
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
	entries, err := records.Entries(ctx, s.seen, s.namespace, s.now)
	if err != nil {
		return nil, err
	}
	declared := map[client.ObjectKey]*records.Declared{}
	if s.seen.Declared {
		var list unstructured.UnstructuredList
		kind := records.DeclarationKind()
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.seen.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
			return nil, fmt.Errorf("listing StatefulSetMigrations: %w", err)
		}
		for i := range list.Items {
			declared[client.ObjectKeyFromObject(&list.Items[i])] = records.DeclaredIn(&list.Items[i])
		}
	}
	var out []dashboard.Row
	for _, e := range entries {
		at := client.ObjectKey{Namespace: e.Namespace, Name: e.Name}
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
	status := declaredStatus(d)
	if e.Journal == nil && status.state != "" {
		e.State, e.Reason, e.ReasonID = plans.State(status.state), status.message, "" // the message names its reason itself
	}
	r := dashboard.New(e.Namespace, e.Name, e.State, e.Plan, e.Journal)
	r.Reason, r.Attention = plans.Line(e.Reason), r.Attention || e.Journal == nil && status.stalled || e.State.Approval()
	if plans.State(status.state) == e.State {
		r.Since = status.since
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

// shownStatus is the part of a StatefulSetMigration's status that the page shows.
type shownStatus struct {
	state, message string
	since          *time.Time
	stalled        bool
}

func declaredStatus(d *records.Declared) (out shownStatus) {
	if d == nil {
		return out
	}
	of := func(field string) string {
		text, _, _ := unstructured.NestedString(d.Object.Object, "status", field)
		return text
	}
	out.state, out.message = of("state"), of("message")
	if at, err := time.Parse(time.RFC3339, of("since")); err == nil {
		out.since = &at
	}
	conditions, _, _ := unstructured.NestedSlice(d.Object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Stalled" && c["status"] == "True" {
			out.stalled = true
		}
	}
	return out
}
