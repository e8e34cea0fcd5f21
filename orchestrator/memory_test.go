package orchestrator

import (
	"reflect"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// remember fills every field of what a process can remember of a plan.
func remember(t *testing.T, h *Orchestrator, p *plans.Plan, r *run) {
	t.Helper()
	s := h.state(p.Name)
	*s = planState{
		name: p.Name, run: r, known: known{uid: "a", plan: p}, tries: &tries{failures: 3}, lost: true, told: reported{}, says: saying{"it moves", h.Now()},
		leases: records.LeaseSightings{}, waits: &waiter{}, by: "alice", draft: &drafting{of: "a/1"},
	}
	for _, of := range []topic{aboutRun, aboutStatus, aboutRecord, aboutDelivery} {
		s.told.isNews(of, "no answer")
	}
	s.buried = true
	if _, _, err := h.holder(t.Context(), h.Cached, p.Name); err != nil || len(s.leases) != 1 {
		t.Fatalf("%v, %v", s.leases, err)
	}
	v := reflect.ValueOf(*s)
	for k := range v.NumField() {
		if v.Field(k).IsZero() {
			t.Errorf("the field %s is not filled", v.Type().Field(k).Name)
		}
	}
	h.notices = &notices{queued: map[string]queued{p.Name: {object: "b"}}}
}

// A process that lives for long has many plans come and go. Of one whose plan and object are gone nothing is left, and
// while its run has not ended only the run, which is asked to end.
func TestNothingIsLeftOfAPlanThatIsGone(t *testing.T) {
	other, seconds, now := "other", int32(15), metav1.NewMicroTime(time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC))
	h, p := fixture(t, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: records.LeaseName("web")},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, RenewTime: &now},
	})
	r := &run{orchestrator: h, plan: p, what: keep, stop: make(chan struct{})}
	look := func() {
		t.Helper()
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	}
	remember(t, h, p, r)
	for _, o := range append(h.records(p)[:1], journalOf(p)) {
		if err := h.Live.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	look()
	want := planState{name: p.Name, run: r, told: reported{}, leases: records.LeaseSightings{}}
	withObject := want
	withObject.says, withObject.draft, withObject.buried = h.plans[p.Name].says, &drafting{of: "a/1"}, true
	if have := *h.plans[p.Name]; !reflect.DeepEqual(have, withObject) || have.says.what == "" {
		t.Errorf("the object is left, and of its plan %+v", have)
	}
	remember(t, h, p, r)
	if err := h.Live.Delete(t.Context(), records.NewDeclared("stsmigrate", p.Name)); err != nil {
		t.Fatal(err)
	}
	look()
	if have := *h.plans[p.Name]; !reflect.DeepEqual(have, want) {
		t.Errorf("before the end of the run %+v is left", have)
	}
	select {
	case <-r.stop:
	default:
		t.Error("the run goes on")
	}
	h.state(p.Name).run = nil
	h.state(p.Name).delay(h.Now(), errOvertaken)
	look() // which its end requeues
	if len(h.plans) != 0 || len(h.notices.queued) != 0 {
		t.Errorf("%v and %v are left", h.plans, h.notices.queued)
	}
	if h.isNews(p.Name, aboutDelivery, ""); len(h.plans) != 0 {
		t.Error("a delivery that comes late has the plan remembered again")
	}
}
