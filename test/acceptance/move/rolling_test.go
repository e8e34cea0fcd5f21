package move_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// The pods of the destination are restarted while a wave is on neither side, on the way there and on the way back. No
// second ordinal goes down beside the wave (S2), the restart is carried out when the wave has arrived, the plan goes on
// after it, and the sets have their own update strategy at the end (S15).
func TestARestartWaitsForTheWaveThatIsAway(t *testing.T) {
	inBothModes(t, options{replicas: 4}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		s.planned()
		w := s.watched()
		s.restartedIn(s.applyArgs(), "StatefulSet web: [0..1] -> [0]", "1", "moved: 4 ordinals")
		alone(t, w)
		w = s.watched()
		s.restartedIn(s.args("abort"), "StatefulSet web: [1..3] -> [2..3]", "2", "aborted")
		alone(t, w)
		s.asBefore(before, there)
	})
}

// restartedIn runs a command, and restarts the destination as kubectl does when the command has said that a wave leaves.
func (s *migration) restartedIn(args []string, leaves, when, said string) {
	s.t.Helper()
	p := start(s.t, args...)
	p.until(leaves)
	s.change(s.destination, &appsv1.StatefulSet{}, "web", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"`+when+`"}}}}}`)
	p.end().expect(s.t, done, said, "pin its rolling updates", "in the middle of a rolling update", "rolling updates go on, partition as before")
}

// alone requires that no two ordinals were down at once. What the budgets allow beside a rolling update is the user's.
func alone(t *testing.T, w *witness.Witness) {
	t.Helper()
	r := w.Stop()
	for _, v := range r.Violations {
		t.Errorf("witness: %s", v)
	}
	if r.MaxUnavailable > 1 {
		t.Errorf("witness: %d ordinals were unavailable at once", r.MaxUnavailable)
	}
}
