package move_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// placeholders are those on both sides.
func (s *migration) placeholders() (out []string) {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var pods corev1.PodList
		if err := on.List(s.t.Context(), &pods, client.InNamespace(on.namespace), client.HasLabels{plans.PlaceholderLabel}); err != nil {
			s.t.Fatal(err)
		}
		for _, p := range pods.Items {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	return out
}

// Each place is taken before its ordinal leaves, on both ways, and nothing of that is left. A quota for as many pods as there
// are ordinals is enough.
func TestThePlacesAreTakenBeforeTheOrdinalsLeave(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		mend := quota("pods", "3")(s)
		w := s.watched()
		run(t, s.planArgs("--placeholder", "warm", "--show-writes")...).expect(t, done, "placeholder  warm: a pod that does nothing takes the place", "web-2-place")
		run(t, s.applyArgs()...).expect(t, done, "make placeholder web-2-place for web-2", "delete placeholder web-0-place, since web-0 takes its place", "moved: 3 ordinals")
		s.arrived(before)
		run(t, s.args("abort")...).expect(t, done, "make placeholder web-0-place for web-0", "aborted")
		proper(t, w, 1)
		mend()
		s.asBefore(before, there)
		if left := s.placeholders(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

const nowhere = "spec: {template: {spec: {nodeSelector: {disk: none-has-it}}}}"

// What no check has found, since the checks were told to be silent, the scheduler says while every ordinal is up.
func TestTheSchedulerSaysNoWhileEveryOrdinalIsUp(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		run(t, s.planArgs("--placeholder", "schedule", "--patch", s.file(nowhere), "--ignore", "nodes-fit")...).expect(t, done)
		run(t, s.applyArgs("--step-timeout", "3s")...).expect(t, held, "placeholder web-1-place of ", "does not have its place yet, so web-1 stays up: no node takes it: ", "didn't match Pod's node affinity/selector")
		s.ready(s.source)
		if left := s.placeholders(); len(left) > 0 {
			t.Errorf("%v keep places for a plan that is blocked", left)
		}
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 1)
		s.asBefore(before, there)
	})
}
