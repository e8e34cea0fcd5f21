package page

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
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

// same compares rows, with their times as instants.
func same(a, b dashboard.Row) bool {
	if a.Since == nil || b.Since == nil || !a.Since.Equal(*b.Since) {
		return a.Since == b.Since && a == b
	}
	a.Since, b.Since = nil, nil
	return a == b
}

func at(t time.Time) *time.Time { return &t }

// filled returns an API server with plans of all sorts. That of mail is in its state since then.
func filled(t *testing.T, since time.Time) client.Client {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	keep(t, c, "mall", "web", func(_ *plans.Plan, j *journal.Journal) {
		j.Epoch = 1
		j.Block(reasons.SetDiffers, "a claim is in the way")
		j.OverdueID, j.Overdue = reasons.VolumeInUse, "volume a is attached" // an earlier release left it
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
	declared(t, c, "mail", map[string]any{"approvedHash": p.Hash}, map[string]any{"state": "Moving", "since": since.Format(time.RFC3339)})
	declared(t, c, "draft", map[string]any{}, map[string]any{"state": "Planning", "message": "there is no set draft", "conditions": []any{map[string]any{"type": "Stalled", "status": "True"}}})
	declared(t, c, "old", map[string]any{}, map[string]any{"state": "Finalized"})
	return c
}

// The page has every plan, whoever carries it out, and every object of which there is no plan yet.
func TestThePageHasEveryPlan(t *testing.T) {
	since := clock().Add(-10 * time.Minute)
	seen := &reach.Cached{Client: filled(t, since), Declared: true}
	s := &shownPlans{seen: seen, context: "home", now: clock}
	rows, err := s.rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]dashboard.Row{
		"db":    {State: "Aborted", Since: at(clock().Add(-time.Hour))},
		"draft": {State: "Planning", Attention: true, Reason: "there is no set draft", Next: "`stsmigrate status draft -n stsmigrate --context home`"},
		"mail":  {State: "Moving", Attention: true, Reason: "volume a is attached", Since: &since},
		"web": {
			State: "Blocked", Attention: true, Reason: "a claim is in the way", ReasonID: "SetDiffers", Runbook: reasons.Runbook(reasons.SetDiffers),
			Next: "`stsmigrate resume web -n mall --context home` or `stsmigrate abort web -n mall --context home`",
		},
	}
	if len(rows) != len(is) {
		t.Errorf("%d rows, expected %d", len(rows), len(is))
	}
	for _, r := range rows {
		want := is[r.Plan]
		want.Namespace, want.Plan, want.Source, want.Destination = r.Namespace, r.Plan, r.Source, r.Destination
		want.Moved, want.Ordinals, want.InFlight, want.MaxUnavailable = r.Moved, r.Ordinals, r.InFlight, r.MaxUnavailable
		if !same(r, want) {
			t.Errorf("%+v\nexpected %+v", r, want)
		}
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
