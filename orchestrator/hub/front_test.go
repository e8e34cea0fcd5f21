package hub

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
		{"Paused", plans.Journal{Paused: true}, kstatus.InProgressStatus},
		{"Stopped", plans.Journal{}, kstatus.InProgressStatus},
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
