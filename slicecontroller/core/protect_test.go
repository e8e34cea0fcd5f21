package core

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func protected(s *Set) { s.Protected = true }

// finalizers sets the finalizers of the set: p for the protection, o for orphan, f for foreground.
func finalizers(letters string) func(*Set) {
	return func(s *Set) {
		for _, l := range letters {
			s.Finalizers = append(s.Finalizers, map[rune]string{'p': Protection, 'o': metav1.FinalizerOrphanDependents, 'f': metav1.FinalizerDeleteDependents}[l])
		}
	}
}

func TestDeletionProtection(t *testing.T) {
	each(t, []step{
		{"it is put on before the first pod is made", "", is(protected, parallel, replicas(1)), "hold +0"},
		{"it is on", "0 1 2", is(protected, finalizers("p")), ""},
		{"it is taken off", "0 1 2", is(finalizers("p")), "let go"},
		{"nobody has asked for it", "0 1 2", nil, ""},
		{"a set that is deleted without it goes", "0 1", is(deleting), ""},
		{"one with it goes on as before", "0 1", is(deleting, protected, finalizers("p")), "+2"},
		{"and updates its pods", "0o 1o 2o", is(deleting, protected, finalizers("p")), "-2"},
		{"it is too late for it", "0 1 2", is(deleting, protected), ""},
		{"once it is off, the set goes", "0 1", is(deleting, finalizers("p")), "let go"},
		{"pods that are let go need none", "0 1", is(deleting, protected, finalizers("po")), "let go"},
		{"in the foreground nothing is made that would be deleted", "0 1", is(deleting, protected, finalizers("pf")), ""},
		{"nor held when all are gone", "", is(deleting, protected, finalizers("pf")), "let go"},
		{"a set that has nothing goes", "", is(deleting, protected, finalizers("p"), replicas(0)), "let go"},
		{"also an invalid one", "0", is(deleting, finalizers("p"), func(s *Set) { s.Spec.Selector = &metav1.LabelSelector{} }), "let go"},
	})
}

// A set whose pods were orphaned while no controller ran is not kept for pods without an owner.
func TestPodsThatWereLetGoAreNotWaitedFor(t *testing.T) {
	s := play(t, "0 1 2", deleting, protected, finalizers("p"))
	for _, p := range s.pods {
		p.OwnerReferences = nil
	}
	s.expect("let go")
}

// Claims that would be deleted with the set keep it, too.
func TestClaimsThatWouldGoHoldTheSet(t *testing.T) {
	s := play(t, "", deleting, protected, conditioned, finalizers("p"), replicas(0), claims("data"), retains("RD"))
	for _, c := range s.set.newClaims(0) {
		s.store(c)
	}
	s.expect("")
	if s.condition(DeletionHeld) == "" {
		t.Error("no condition")
	}
}

// The cache may be older than the deletion: pods that only the API server has keep the set.
func TestASetIsNotLetGoByTheCacheAlone(t *testing.T) {
	s := play(t, "0 1 2", deleting, protected, finalizers("p"), parallel)
	s.seen = func(w *World) { w.Pods = nil }
	if got := s.sync(); strings.Contains(got, "let go") {
		t.Errorf("%q", got)
	}
	s = play(t, "", deleting, protected, finalizers("p"))
	s.fails["read web-1"] = errors.New("no answer")
	if got := s.sync(); got != "" || !errors.Is(s.err, s.fails["read web-1"]) {
		t.Errorf("with a pod that cannot be read: %q, error %v", got, s.err)
	}
}

func TestConditionsSayWhatHoldsADeletion(t *testing.T) {
	for letters, want := range map[string]string{
		"p":  "True Protected: the set is being deleted, and its deletion protection keeps its pods: delete it again with --cascade=orphan to keep them without the set, or set spec.deletionProtection to false to delete them, too",
		"pf": "True Foreground: the set was deleted in the foreground: the garbage collector deletes its pods, and deletion protection cannot keep them",
		"":   "",
	} {
		s := play(t, "0 1 2", deleting, protected, conditioned, finalizers(letters))
		s.expect("")
		if got := s.condition(DeletionHeld); got != want {
			t.Errorf("%q: %q", letters, got)
		}
		if got := s.condition(Stalled); (got != "") != (want != "") {
			t.Errorf("%q: stalled: %q", letters, got)
		}
	}
}

// A set that cannot be protected is reconciled all the same, and has a condition; a set that cannot be
// released stays.
func TestAFinalizerThatCannotBeChanged(t *testing.T) {
	s := play(t, "0 1", protected, conditioned)
	s.fails["hold"] = apierrors.NewForbidden(metav1.SchemeGroupVersion.WithResource("statefulsetslices").GroupResource(), "web", errors.New("no"))
	if got := s.sync(); got != "hold +2" || s.err == nil || !strings.Contains(s.condition(Stalled), "changing the finalizer of the deletion protection") {
		t.Errorf("%q, error %v, stalled %q", got, s.err, s.condition(Stalled))
	}
	s = play(t, "0 1", deleting, finalizers("p"))
	s.fails["let go"] = errors.New("no")
	if got := s.sync(); got != "let go" || s.err == nil {
		t.Errorf("%q, error %v", got, s.err)
	}
}
