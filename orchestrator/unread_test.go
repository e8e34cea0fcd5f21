package orchestrator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// series returns the metrics about a plan.
func series(t *testing.T, of *prometheus.Registry) (out []string) {
	t.Helper()
	all, err := of.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.Metric {
			if l := m.Label; len(l) > 0 && l[0].GetName() == "plan" {
				out = append(out, strings.TrimPrefix(f.GetName(), "stsmigrate_"))
				if len(l) > 1 {
					out[len(out)-1] += " " + l[1].GetValue()
				}
			}
		}
	}
	return out
}

// showing checks the conditions of the plan.
func showing(t *testing.T, h *Orchestrator, p *plans.Plan, want string) {
	t.Helper()
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	var shown frontStatus
	status, _ := d.Object.Object["status"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &shown); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range shown.Conditions {
		if slices.Contains([]string{"Ready", "Stalled", "Reconciling"}, c.Type) {
			got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason)
		}
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("shown as %q (%+v), expected %q", got, shown, want)
	}
}

// replaced edits the journal by hand, and returns the result.
func replaced(t *testing.T, h *Orchestrator, from, to string) string {
	t.Helper()
	var cm corev1.ConfigMap
	if err := h.Live.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: "stsmigrate-web-journal"}, &cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["journal.json"] = strings.Replace(cm.Data["journal.json"], from, to, 1)
	if err := h.Live.Update(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	return cm.Data["journal.json"]
}

// A journal that only a newer release understands is left to that release. Here the plan stops, and
// metrics, status and an event report it. What is known of its ordinals stays visible without reading
// the journal.
func TestAPlanThatCannotBeReadIsNotForgotten(t *testing.T) {
	h, p := fixture(t)
	known := prometheus.NewRegistry()
	var err error
	if h.gauges, err = newGauges(known); err != nil {
		t.Fatal(err)
	}
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	now := h.Now()
	if err := store.Change(t.Context(), p, func(j *journal.Journal) error {
		j.Epoch, j.Blocked, j.Stopwatch = 1, "gate leader says no", &journal.Stopwatch{Span: plans.Terminating, Since: metav1.NewMicroTime(now)}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	look := func(want ...string) {
		t.Helper()
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		want = append([]string{"plan_ordinals destination", "plan_ordinals neither", "plan_ordinals source"}, want...)
		if got := series(t, known); !slices.Equal(got, want) {
			t.Errorf("metrics are %q, expected %q", got, want)
		}
	}
	look("plan_state Blocked", "plan_step", "wave_left_timestamp_seconds")
	showing(t, h, p, "Ready=False Blocked, Stalled=True Blocked")
	replaced(t, h, "{", `{"requires":["pairs"],`)
	events := h.Events.(*record.FakeRecorder).Events
	for len(events) > 0 {
		<-events
	}
	for range 2 {
		look("plan_state Unreadable", "plan_step", "wave_left_timestamp_seconds")
	}
	showing(t, h, p, "Ready=False Unreadable, Stalled=True RecordUnreadable")
	if len(events) != 1 {
		t.Fatalf("%d events, expected one", len(events))
	}
	if e := <-events; !strings.HasPrefix(e, "Warning Unreadable ConfigMap stsmigrate/stsmigrate-web-journal: this Journal was written by a newer stsmigrate and requires support for [\"pairs\"]") {
		t.Errorf("the event says %s", e)
	}

	other, seconds, renewed := "other", int32(15), metav1.NewMicroTime(now.Add(-time.Second))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "stsmigrate-web"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	if err := h.Live.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	look("plan_step", "wave_left_timestamp_seconds") // the process that carries it out exports its state
	if err := h.Live.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}

	replaced(t, h, `"requires":["pairs"]`, `"mood":"good"`)
	look("plan_state Blocked", "plan_step", "wave_left_timestamp_seconds")
	showing(t, h, p, "Ready=False Blocked, Stalled=True Blocked")
	if err := store.Change(t.Context(), p, func(j *journal.Journal) error { j.Observed.Request = "7"; return nil }); err != nil {
		t.Fatal(err)
	}
	if text := replaced(t, h, "", ""); !strings.Contains(text, `"mood":"good"`) || !strings.Contains(text, `"request":"7"`) {
		t.Errorf("it is written back as %s", text)
	}
}

// A pass that panics affects its own plan, and the next pass serves another.
func TestAPassThatPanicsTellsOfItsPlan(t *testing.T) {
	h, p := fixture(t)
	h.Cached = interceptor.NewClient(h.Live.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := o.(*coordinationv1.Lease); ok {
			panic("no such thing")
		}
		return c.Get(ctx, key, o, opts...)
	}})
	_, err := h.pass(t.Context(), p.Name)
	if !isUnreadable(err) || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("%v", err)
	}
	if len(h.running()) > 0 {
		t.Error("it was begun all the same")
	}
}

// A plan that becomes unreadable while it waits for room takes no room from other plans, and ends none of
// their runs.
func TestAPlanThatCannotBeReadKeepsNoRoomFromOthers(t *testing.T) {
	h, p := fixture(t)
	h.MaxPlans = 1
	h.lock.Lock()
	h.state("busy").run = runOf(h, p, carry, true, true)
	full := h.hasRoom(h.state(p.Name), inFlight, plans.Sides())
	h.state("busy").run = nil
	h.lock.Unlock()
	replaced(t, h, "{", `{"requires":["pairs"],`)
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	if full || !h.hasRoom(h.state("other"), kept, plans.Sides()) {
		t.Errorf("there was room: %t; a plan that can be read has none", full)
	}
}
