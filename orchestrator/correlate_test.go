package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// However many events a plan had before, those that matter are written with their own messages. The
// events of an outage are limited.
func TestWhatMattersIsAlwaysTold(t *testing.T) {
	c := record.NewEventCorrelatorWithOptions(correlation())
	told := func(kind, reason, message string) string {
		t.Helper()
		e := &corev1.Event{Type: kind, Reason: reason, Message: message, Source: corev1.EventSource{Component: "stsmigrate"}}
		e.InvolvedObject = corev1.ObjectReference{Kind: "ConfigMap", Namespace: "stsmigrate", Name: "stsmigrate-web", UID: "u"}
		r, err := c.EventCorrelate(e)
		if err != nil {
			t.Fatal(err)
		}
		if r.Skip {
			return ""
		}
		return r.Event.Message
	}
	for o := range 60 {
		if m := fmt.Sprintf("web-%d available", o); told(corev1.EventTypeNormal, "OrdinalArrived", m) != m {
			t.Errorf("%s is not told", m)
		}
	}
	if told(corev1.EventTypeNormal, "Moved", "plan web") != "plan web" {
		t.Error("Moved is not told after 60 ordinals")
	}
	tried := 0
	for n := range 40 {
		if m := told(corev1.EventTypeWarning, tryingAgain, fmt.Sprint("no answer ", n)); m != "" {
			tried++
		}
	}
	if tried == 0 || tried == 40 {
		t.Errorf("%d of 40 outages are told", tried)
	}
	for _, reason := range []string{"Blocked", "Overdue"} {
		if m := told(corev1.EventTypeWarning, reason, "a person is needed"); !strings.HasPrefix(m, "a person") {
			t.Errorf("%s is not told after 40 outages: %q", reason, m)
		}
	}
}
