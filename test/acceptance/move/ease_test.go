package move_test

import (
	"context"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// While a plan is held before an ordinal leaves, nodes can be drained as before the move.
func TestBudgetsAreOpenWhileAGateHoldsThePlan(t *testing.T) {
	inBothModes(t, options{}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		gate := "  gates:\n  - {name: never, when: BeforeShrink, timeout: 2s, interval: 1s, expect: what nobody says, httpGet: {path: /, port: 1}}\n"
		run(t, s.asked(gate)...).expect(t, done, "gate         never (BeforeShrink)")
		run(t, s.applyArgs()...).expect(t, held, "web-4 Tighten", "minAvailable 4", "gate never (BeforeShrink) of web-4")
		s.eventually("the budgets are open", func(ctx context.Context) bool { return s.allowed(ctx) == 2 })
		s.shows(held, "Blocked", "budgets: source 2 of 5 may go", "tight for at most")
		run(t, s.args("resume")...).expect(t, held, "gate never (BeforeShrink) of web-4")
		s.eventually("the budgets are open again", func(ctx context.Context) bool { return s.allowed(ctx) == 2 })
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 2)
		s.asBefore(before, there)
	})
}

// allowed returns how many evictions the budgets of both sides allow at the moment, or -1 if they cannot be
// read.
func (s *migration) allowed(ctx context.Context) (n int32) {
	for _, on := range []*end{s.source, s.destination} {
		var list policyv1.PodDisruptionBudgetList
		if err := on.List(ctx, &list, client.InNamespace(on.namespace)); err != nil {
			return -1
		}
		for _, b := range list.Items {
			if b.Status.ObservedGeneration == b.Generation {
				n += b.Status.DisruptionsAllowed
			}
		}
	}
	return n
}

// While an ordinal waits for another to become available, the budgets stay open.
func TestBudgetsStayOpenWhileAnotherPodIsNotReady(t *testing.T) {
	inBothModes(t, options{}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-3 Tighten")
		s.change(s.source, &policyv1.PodDisruptionBudget{}, "web", `{"metadata":{"labels":{"seen":"true"}}}`)
		var open, now policyv1.PodDisruptionBudget
		s.read(s.source, &open)
		mend := s.limping("web-0")
		run(t, s.args("resume", "--step-timeout", "2s")...).expect(t, held, "web-3 Tighten", "pod web-0 of", "no ordinal is scaled down until it is available")
		s.read(s.source, &now)
		same(t, "the budget of the source", open.Spec, now.Spec)
		mend()
		run(t, s.args("resume")...).expect(t, done, "moved: 5 ordinals")
	})
}
