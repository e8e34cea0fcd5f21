package hub

import (
	"context"
	"errors"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// What Flux, Helm and their like make of a plan, whatever it was before.
func TestToolsThatKnowNoKindUnderstandAPlan(t *testing.T) {
	_, p := stage(t)
	now := metav1.NewTime(time.Unix(1700000000, 0))
	var before frontStatus
	for _, c := range []struct {
		state string
		j     plans.Journal
		want  kstatus.Status
	}{
		{"Planned", plans.Journal{}, kstatus.InProgressStatus},
		{"Moving", plans.Journal{}, kstatus.InProgressStatus},
		{"Held", plans.Journal{Held: "volume a is in use"}, kstatus.FailedStatus},
		{"Moving", plans.Journal{}, kstatus.InProgressStatus},
		{"Moving", plans.Journal{Overdue: "volume a is still attached"}, kstatus.FailedStatus},
		{"Moving", plans.Journal{}, kstatus.InProgressStatus},
		{"Paused", plans.Journal{Paused: true}, kstatus.InProgressStatus},
		{"Waiting", plans.Journal{}, kstatus.InProgressStatus},
		{"Moved", plans.Journal{Outcome: plans.Moved}, kstatus.CurrentStatus},
		{"Returning", plans.Journal{}, kstatus.InProgressStatus},
		{"Aborted", plans.Journal{Outcome: plans.Aborted}, kstatus.CurrentStatus},
	} {
		after := shows(before, p, &c.j, c.state, now)
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		o.SetGroupVersionKind(frontKind())
		got, err := kstatus.Compute(o)
		if err != nil || got.Status != c.want || c.j.Held != "" && got.Message != c.j.Held {
			t.Errorf("after %q, %s: %v (%v), expected %s; %+v", before.State, c.state, got, err, c.want, after.Conditions)
		}
		before, now = after, metav1.NewTime(now.Add(time.Minute))
	}
	again := shows(before, p, &plans.Journal{Outcome: plans.Aborted}, "Aborted", now)
	if again.Conditions[0].LastTransitionTime != before.Conditions[0].LastTransitionTime {
		t.Errorf("nothing has happened, and the time of the condition is another: %+v", again.Conditions)
	}
}

// What is the last that happens to a plan is shown, even if the API server was away just then:
// nothing else would bring the plan back.
func TestWhatCouldNotBeShownIsShownLater(t *testing.T) {
	h, p := stage(t)
	h.Front = true
	err := orchestrator.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *plans.Journal) error { j.Depart(p, plans.Return); j.Outcome = plans.Aborted; return nil })
	if err != nil {
		t.Fatal(err)
	}
	var away error
	written := 0
	h.Live = interceptor.NewClient(h.Live.(client.WithWatch), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return away
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			written++
			return nil
		},
	})
	look := func(when string, later time.Duration, writes int) {
		t.Helper()
		r, err := h.Reconcile(t.Context(), request())
		if err != nil || r.RequeueAfter != later || written != writes || (h.shown[p.Name].State == "Aborted") != (writes > 0) {
			t.Errorf("%s: looked at again after %s (%v), %d written, %+v shown; expected %s, %d", when, r.RequeueAfter, err, written, h.shown[p.Name], later, writes)
		}
	}
	away = errors.New("connection refused")
	look("while the API server is away", again, 0)
	away = nil
	look("afterwards", 0, 1)
	look("when nothing has happened since", 0, 1)
}
