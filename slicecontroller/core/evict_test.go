package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func evicts(s *Set) { s.Evicts = true }

// refusal returns the API server's error for an eviction that a budget does not allow.
func refusal(seconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 3 healthy pods and has 3 currently"})
	return err
}

// Updates of any strategy evict pods; everything else deletes them.
func TestOnlyUpdatesEvict(t *testing.T) {
	each(t, []step{
		{"an update", "0o 1o 2o", is(evicts), "evict 2"},
		{"several at once", "0o 1o 2o", is(evicts, unavailable("2")), "evict 2 evict 1"},
		{"in any order", "0o! 1o! 2o", is(evicts, parallel), "evict 0 evict 1"},
		{"one that is forced", "0o! 1o! 2o!", is(evicts, enforced), "evict 2"},
		{"OnDelete has none", "0o 1o 2o", is(evicts, onDelete), ""},
		{"a pod outside the range", "0 1 2 3", is(evicts), "-3"},
		{"a pod that has failed", "0 1x 2", is(evicts), "-1"},
	})
}

// A refused eviction is no failure: no other pod is deleted, the condition names the budget, and there is
// one Event.
func TestARefusedEvictionIsWaitedFor(t *testing.T) {
	for _, kind := range []func(*Set){func(*Set) {}, enforced, parallel} {
		s := play(t, "0o 1o 2o", evicts, conditioned, unavailable("2"), kind)
		s.fails["evict 2"] = refusal(0)
		s.expect("evict 2")
		const want = "pod web-2 is not evicted for the update: The disruption budget web needs 3 healthy pods and has 3 currently"
		if got := s.condition(EvictionRefused); got != "True TooManyRequests: "+want {
			t.Errorf("condition %q", got)
		}
		if got := s.condition(Progressing); got != "True Waiting: "+want {
			t.Errorf("condition %q", got)
		}
		if got := s.condition(Stalled); got != "" {
			t.Errorf("stalled: %q", got)
		}
		if len(s.told) != 1 || s.told[0] != "Normal EvictionRefused "+want {
			t.Errorf("told %q", s.told)
		}
		s.expect("evict 2")
		if len(s.told) != 0 {
			t.Errorf("told again: %q", s.told)
		}
		delete(s.fails, "evict 2")
		if got := strings.Join(s.live(), " "); !strings.Contains(got, "evict 2") || s.condition(EvictionRefused) != "" || s.condition(Progressing) != "False Complete: 3 of 3 pods are available" {
			t.Errorf("%s, condition %q", got, s.condition(EvictionRefused))
		}
	}
}

// The Event about a broken pod is recorded when the pod is evicted, and not when the eviction is refused.
func TestAForcedEvictionIsToldWhenThePodGoes(t *testing.T) {
	s := play(t, "0o! 1o! 2o!", evicts, enforced, conditioned)
	s.fails["evict 2"] = refusal(0)
	s.expect("evict 2")
	if strings.Contains(strings.Join(s.told, " "), "ForcedReplacement") || len(s.outcome.Forced) != 0 {
		t.Errorf("told %q, forced %v", s.told, s.outcome.Forced)
	}
	delete(s.fails, "evict 2")
	s.expect("evict 2")
	if !strings.Contains(strings.Join(s.told, " "), "ForcedReplacement") || len(s.outcome.Forced) != 1 {
		t.Errorf("told %q, forced %v", s.told, s.outcome.Forced)
	}
}

// An eviction is retried at the time that the API server names, and with the back-off of all failures if it
// names none.
func TestAnEvictionIsAskedForAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		again time.Duration
		fails bool
	}{
		"a budget":                         {refusal(0), 0, false},
		"a budget that is not known yet":   {refusal(10), 10 * time.Second, false},
		"an API server that is busy":       {apierrors.NewTooManyRequests("busy", 7), 7 * time.Second, false},
		"one that does not say until when": {apierrors.NewTooManyRequests("busy", 0), 0, true},
		"two budgets of one pod":           {apierrors.NewInternalError(fmt.Errorf("this pod has more than one PodDisruptionBudget")), 0, true},
		"a pod that has changed":           {apierrors.NewConflict(policyv1.Resource("pods"), "web-2", nil), 0, true},
		"a pod that is gone":               {apierrors.NewNotFound(policyv1.Resource("pods"), "web-2"), 0, false},
	} {
		s := play(t, "0o 1o 2o", evicts)
		s.fails["evict 2"] = c.err
		s.sync()
		if got := s.outcome.Again; (s.err != nil) != c.fails || (c.again == 0) != got.IsZero() || c.again > 0 && !got.Equal(s.now.Add(c.again)) {
			t.Errorf("%s: again at %s, error %v", name, got, s.err)
		}
	}
}
