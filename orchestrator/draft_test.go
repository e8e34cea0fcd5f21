package orchestrator

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// undeclared returns an Orchestrator whose namespace has an object, as Git would create it, and no plan.
func undeclared(t *testing.T, change func(*plans.Declaration)) (*Orchestrator, *plans.Plan) {
	t.Helper()
	h, p := fixture(t)
	if err := h.Live.Delete(t.Context(), journalOf(p)); err != nil {
		t.Fatal(err)
	}
	for _, o := range h.records(p) {
		if err := h.Live.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	declare(t, h.Live, p, change)
	return h, p
}

// told returns a field of the status.
func told(t *testing.T, h *Orchestrator, field string) string {
	t.Helper()
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := unstructured.NestedString(d.Object.Object, "status", field)
	return out
}

// A plan is made from an object that approves nothing. An object that approves a plan that does not
// exist gets no other plan.
func TestAPlanIsMadeOfWhatApprovesNone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plans.Declaration)
		says   string
		tried  bool
	}{
		"nothing approved":      {func(d *plans.Declaration) { d.ApprovedHash = "" }, `no cluster named "`, true},
		"another plan approved": {func(d *plans.Declaration) { d.ApprovedHash = "abc" }, "spec.approvedHash is abc, but no such plan is stored: ConfigMap stsmigrate-web does not exist", false},
		"nonsense":              {func(d *plans.Declaration) { d.ApprovedHash, d.Direction = "", "Fly" }, `spec.direction is "Fly"`, false},
		"a file of somebody":    {func(d *plans.Declaration) { d.ApprovedHash, d.Source.Kubeconfig = "", "/etc/passwd" }, "spec.source.kubeconfig", false},
		"no namespace":          {func(d *plans.Declaration) { d.ApprovedHash, d.Source.Namespace, d.Destination.Namespace = "", "", "" }, ".namespace is empty", true},
	} {
		h, p := undeclared(t, c.change)
		r, err := h.Reconcile(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		h.all.Wait()
		if (len(h.news) > 0) != c.tried {
			t.Errorf("%s: %d woken", name, len(h.news))
		}
		if r, err = h.Reconcile(t.Context(), request()); err != nil || (r.RequeueAfter == draftRetryInterval) != c.tried {
			t.Errorf("%s: tried again after %s, %v", name, r.RequeueAfter, err)
		}
		if state, message := told(t, h, "state"), told(t, h, "message"); state != string(plans.StatePlanning) || !strings.Contains(message, c.says) {
			t.Errorf("%s: %s, %q; expected %q", name, state, message, c.says)
		}
		if _, err := records.NewStore(h.Live, h.Namespace, p.Name).Plan(t.Context()); err == nil {
			t.Errorf("%s: there is a plan", name)
		}
	}
}

// A plan waits until its exact hash is approved, and is then carried out.
func TestAPlanWaitsForItsApproval(t *testing.T) {
	h, p := undeclared(t, func(d *plans.Declaration) { d.ApprovedHash = "" })
	h.ending = true
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	if err := store.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if state, hash, message, summary := told(t, h, "state"), told(t, h, "hash"), told(t, h, "message"), told(t, h, "summary"); state != string(plans.StatePlanReady) || hash != p.Hash || !strings.Contains(message, "set spec.approvedHash to "+p.Hash) || !strings.Contains(summary, "web") {
		t.Errorf("%s, %s, %q, %q", state, hash, message, summary)
	}
	if _, _, err := store.Journal(t.Context(), p); err == nil {
		t.Error("it is begun")
	}
	declare(t, h.Live, p, func(*plans.Declaration) {}) // this approves the plan
	look()
	if j, _, err := store.Journal(t.Context(), p); err != nil || !j.Detached || j.Epoch != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	look()
	if state := told(t, h, "state"); state != "Planned" {
		t.Errorf("%s", state)
	}
}

// A plan other than the approved one never begins. Differences from a plan under way are reported.
func TestWhatWasNotApprovedIsNotDone(t *testing.T) {
	h, p := undeclared(t, func(d *plans.Declaration) { d.ApprovedHash, d.Window = "", 7 })
	h.ending = true
	if err := records.NewStore(h.Live, h.Namespace, p.Name).CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if message := told(t, h, "message"); !strings.Contains(message, "spec.window differs from the stored plan: delete ConfigMap stsmigrate-web, and the plan is recreated") {
		t.Errorf("%q", message)
	}
}
