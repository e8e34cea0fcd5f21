package orchestrator

import (
	"testing"

	"k8s.io/client-go/tools/record"

	"github.com/stsmigrate/stsmigrate/internal/engine"
)

// A plan that another process has taken over is not blocked, and no alert is raised for it.
func TestATakeoverCallsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		how  engine.Progress
		told int
	}{
		"taken over": {engine.Progress{Kind: engine.Blocked, Overtaken: true, Reason: "another process has it"}, 0},
		"blocked":    {engine.Progress{Kind: engine.Blocked, Reason: "a claim is in the way"}, 1},
	} {
		h, p := fixture(t)
		events := record.NewFakeRecorder(10)
		h.Events = events
		(&run{orchestrator: h, plan: p}).ended(t.Context(), c.how)
		if len(events.Events) != c.told {
			t.Errorf("%s: %d events, expected %d", name, len(events.Events), c.told)
		}
	}
}
