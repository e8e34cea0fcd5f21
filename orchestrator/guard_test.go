package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Deleting the object or the record of a plan under way ends nothing: both disappear when the plan has
// ended. If the plan was never begun, they disappear at once, and the plan never begins.
func TestWhatIsUnderWayIsNotDeletedFromUnderIt(t *testing.T) {
	q := plan(t)
	other, seconds, renewed := "other", int32(15), metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-web"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	for name, c := range map[string]struct {
		journal func(*journal.Journal)
		more    []client.Object
		kept    bool
		begun   action
	}{
		"under way":                       {func(j *journal.Journal) { j.Epoch = 1 }, nil, true, carry},
		"blocked":                         {func(j *journal.Journal) { j.Epoch, j.Blocked = 1, "why" }, nil, true, nothing},
		"moved":                           {ended(q, plans.Moved), nil, true, nothing},
		"never begun":                     {func(*journal.Journal) {}, nil, false, nothing},
		"about to be begun by another":    {func(*journal.Journal) {}, []client.Object{lease}, true, nothing},
		"aborted":                         {ended(q, plans.Aborted), nil, false, nothing},
		"finalized":                       {ended(q, plans.Finalized), nil, false, nothing},
		"finalized, and names are kept":   {func(j *journal.Journal) { ended(q, plans.Finalized)(j); j.KeepNames = true }, nil, true, nothing},
		"paused before the first ordinal": {func(j *journal.Journal) { j.Paused, j.Observed.Paused = true, true }, nil, false, nothing},
	} {
		h, p := fixture(t, c.more...)
		h.ending = true
		store := records.NewStore(h.Live, h.Namespace, p.Name)
		if err := h.guard(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := store.Change(t.Context(), p, func(j *journal.Journal) error { c.journal(j); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := deleted(t, h, p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, o := range h.records(p) {
			err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == c.kept {
				t.Errorf("%s: %T is kept: %v, expected %t", name, o, err, c.kept)
			}
		}
		if !c.kept {
			continue
		}
		j, _, err := store.Journal(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if what, _ := actionFor(p, j, h.said(j, d)); what != c.begun {
			t.Errorf("%s: %q is to be done, expected %q", name, what, c.begun)
		}
		shown := shows(frontStatus{}, standing{name: p.Name, declared: d, plan: p, journal: j}, metav1.Now())
		if j.Blocked == "" && !strings.Contains(shown.Message, "it is being deleted, and disappears when plan web has ended; the deletion does not stop the plan") {
			t.Errorf("%s: it says %q", name, shown.Message)
		}
	}
}

// deleted deletes object and record, and lets the process observe it.
func deleted(t *testing.T, h *Orchestrator, p *plans.Plan) error {
	t.Helper()
	for _, o := range h.records(p) {
		if err := h.Live.Delete(t.Context(), o); err != nil {
			return err
		}
	}
	if d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name); err != nil || d == nil {
		return fmt.Errorf("it went without a look: %w", err)
	}
	for range 2 { // the first deletion requeues the plan
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			return err
		}
	}
	return nil
}

// A user who deletes only one of the two objects of a plan that was never begun need not delete the other
// one to be rid of it.
func TestOneOfTheTwoObjectsMayBeDeleted(t *testing.T) {
	for k, kind := range []string{"the record", "the StatefulSetMigration"} {
		h, p := fixture(t)
		h.ending = true
		if err := h.guard(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error {
			j.Block(reasons.ChecksFailed, "a check fails")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		o := h.records(p)[k]
		if err := h.Live.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v, with the finalizers %v", kind, err, o.GetFinalizers())
		}
		other := h.records(p)[1-k]
		if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || len(other.GetFinalizers()) == 0 {
			t.Errorf("%s is deleted, and the other one is %v with the finalizers %v", kind, err, other.GetFinalizers())
		}
	}
}

// A plan that was begun, and whose journal is lost, does not begin again. Its run ends: while it keeps the Lease, the
// journal cannot be rebuilt.
func TestALostJournalIsNotMadeAgain(t *testing.T) {
	h, p := fixture(t)
	if err := h.guard(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	keeps := &run{orchestrator: h, plan: p, what: keep, stop: make(chan struct{})}
	h.state(p.Name).run = keeps
	if err := h.Live.Delete(t.Context(), journalOf(p)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	_, _, lost := records.NewStore(h.Live, h.Namespace, p.Name).Journal(t.Context(), p)
	status, _ := d.Object.Object["status"].(map[string]any)
	if message, _ := status["message"].(string); lost == nil || !strings.Contains(message, "restore it from a backup, or `stsmigrate recover` it") {
		t.Errorf("%v, %v", lost, status)
	}
	select {
	case <-keeps.stop:
	default:
		t.Error("the run keeps the Lease")
	}
}

// A plan that has ended does not begin again either, when its journal is deleted.
func TestAnEndedPlanDoesNotBeginAgain(t *testing.T) {
	h, p := fixture(t)
	if err := h.Live.Delete(t.Context(), journalOf(p)); err != nil {
		t.Fatal(err)
	}
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	d.Object.Object["status"] = map[string]any{"state": string(plans.Aborted)}
	if err := h.Live.Status().Update(t.Context(), d.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if j, _, err := records.NewStore(h.Live, h.Namespace, p.Name).Journal(t.Context(), p); err == nil {
		t.Errorf("it has a new journal: %+v", j)
	}
}

// The record of an ended plan is deleted as a whole when the user deletes the plan. Nothing is deleted
// of a plan that is still needed.
func TestTheJournalGoesWithAPlanThatHasEnded(t *testing.T) {
	for outcome, gone := range map[plans.Outcome]bool{plans.Finalized: true, plans.Aborted: true, plans.Moved: false} {
		h, p := fixture(t)
		store := records.NewStore(h.Live, h.Namespace, p.Name)
		if err := store.Change(t.Context(), p, func(j *journal.Journal) error {
			j.Epoch, j.Outcome = 1, outcome
			j.Leg.Direction = map[plans.Outcome]plans.Direction{plans.Finalized: plans.Finalize, plans.Aborted: plans.Abort, plans.Moved: plans.Move}[outcome]
			j.Leg.Lowest = j.Leg.End
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, o := range h.records(p) {
			if err := h.Live.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		o := journalOf(p)
		if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) != gone {
			t.Errorf("%s: the journal: %v, expected it to be gone: %t", outcome, err, gone)
		}
	}
}

// ended gives a plan an outcome.
func ended(p *plans.Plan, outcome plans.Outcome) func(*journal.Journal) {
	return func(j *journal.Journal) {
		if direction := map[plans.Outcome]plans.Direction{plans.Finalized: plans.Finalize, plans.Aborted: plans.Abort}[outcome]; direction != "" {
			j.StartLeg(p, direction)
		}
		j.Epoch, j.Outcome = 1, outcome
	}
}
