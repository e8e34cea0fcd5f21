package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/dashboard"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/reasons"
	"github.com/stsmigrate/stsmigrate/records"
)

func clock() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// keep stores a plan.
func keep(t *testing.T, c client.Client, namespace, name string, change func(*plans.Plan, *journal.Journal)) *plans.Plan {
	t.Helper()
	p := planstest.Named(t, "id-"+name)
	p.Name, p.ID, p.Hash = name, name+"-abc", ""
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	j := journal.New(p)
	change(p, j)
	if err := records.NewStore(c, namespace, name).Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	return p
}

// declared stores a StatefulSetMigration with a status.
func declared(t *testing.T, c client.Client, name string, spec, status map[string]any) {
	t.Helper()
	o := records.NewDeclared("stsmigrate", name)
	o.Object["spec"], o.Object["status"] = spec, status
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// The page has every plan, whoever carries it out, and every object of which there is no plan yet.
func TestThePageHasEveryPlan(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	seen := &reach.Cached{Client: c, Declared: true}
	keep(t, c, "mall", "web", func(_ *plans.Plan, j *journal.Journal) {
		j.Epoch = 1
		j.Block(reasons.SetDiffers, "a claim is in the way")
	})
	keep(t, c, "mall", "db", func(p *plans.Plan, j *journal.Journal) {
		j.Epoch, j.EndedAt = 1, &metav1.Time{Time: clock().Add(-time.Hour)}
		j.StartLeg(p, plans.Abort)
		j.Outcome = plans.Aborted
	})
	p := keep(t, c, "stsmigrate", "mail", func(_ *plans.Plan, j *journal.Journal) {
		j.Detached, j.Epoch, j.Overdue = true, 1, "volume a\nis attached"
	})
	me, seconds, now := "orchestrator-1", int32(15), metav1.NewMicroTime(clock())
	err := c.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: records.LeaseName("mail")},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &me, LeaseDurationSeconds: &seconds, RenewTime: &now},
	})
	if err != nil {
		t.Fatal(err)
	}
	since := clock().Add(-10 * time.Minute)
	declared(t, c, "mail", map[string]any{"approvedHash": p.Hash}, map[string]any{"state": "Moving", "since": since.Format(time.RFC3339)})
	declared(t, c, "draft", map[string]any{}, map[string]any{"state": "Planning", "message": "there is no set draft", "conditions": []any{map[string]any{"type": "Stalled", "status": "True"}}})
	declared(t, c, "old", map[string]any{}, map[string]any{"state": "Finalized"})
	s := &shownPlans{seen: seen, context: "home", now: clock}
	rows, err := s.rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b dashboard.Row) int { return strings.Compare(a.Plan, b.Plan) })
	if len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	db, draft, mail, web := rows[0], rows[1], rows[2], rows[3]
	if db.State != "Aborted" || db.Attention || db.Next != "" || !db.Since.Equal(clock().Add(-time.Hour)) {
		t.Errorf("%+v", db)
	}
	if draft.State != "Planning" || !draft.Attention || draft.Reason != "there is no set draft" {
		t.Errorf("%+v", draft)
	}
	if mail.State != "Moving" || !mail.Attention || strings.Contains(mail.Reason, "\n") || !mail.Since.Equal(since) {
		t.Errorf("%+v", mail)
	}
	if web.State != "Blocked" || web.Reason != "a claim is in the way" || web.Next != "`stsmigrate resume web -n mall --context home` or `stsmigrate abort web -n mall --context home`" || web.Ordinals == 0 {
		t.Errorf("%+v", web)
	}
	seen.Declared = false
	if rows, err = s.rows(t.Context()); err != nil || len(rows) != 3 {
		t.Errorf("without the kind: %v, %+v", err, rows)
	}
	s.namespace = "mall"
	if rows, err = s.rows(t.Context()); err != nil || len(rows) != 2 {
		t.Errorf("of one namespace: %v, %+v", err, rows)
	}
}
