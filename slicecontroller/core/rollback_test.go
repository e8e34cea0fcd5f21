package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

func rollsBack(s *Set) { s.RollsBack, s.Conditioned, s.Deadline = true, true, time.Minute }

func image(name string) func(*Set) {
	return func(s *Set) { s.Spec.Template.Spec.Containers[0].Image = name }
}

// tooLate returns a set whose update to an image that never starts has exceeded the progress deadline.
func tooLate(t *testing.T, pods string, change ...func(*Set)) *fixture {
	t.Helper()
	s := play(t, pods, append([]func(*Set){rollsBack, image("broken")}, change...)...)
	s.sync()
	s.now = s.now.Add(time.Minute + time.Second)
	s.sync()
	return s
}

// madeFrom lists the images of the pods.
func (s *fixture) madeFrom() string {
	var out []string
	for _, p := range sortedByName(s.pods) {
		out = append(out, p.Spec.Containers[0].Image)
	}
	return strings.Join(out, " ")
}

// A failed update is rolled back, whatever the state of its pods, and the set comes to rest there.
func TestAnUpdateThatFailsGoesBack(t *testing.T) {
	for _, c := range []struct {
		name, pods string
		set        []func(*Set)
		want       []string // the effects of the passes after the decision
		made       string
	}{
		{"in order", "0o 1o 2?", nil, []string{"-2", "+2"}, "web:1 web:1 web:1"},
		{"with more of them, the highest goes first and alone", "0o 1? 2?", is(unavailable("2")), []string{"-2", "+2", "-1", "+1"}, "web:1 web:1 web:1"},
		{"Parallel", "0o 1? 2?", is(parallel, unavailable("2")), []string{"-2", "+2", "-1", "+1"}, "web:1 web:1 web:1"},
		{"enforced", "0o 1o 2?", is(enforced), []string{"-2", "+2"}, "web:1 web:1 web:1"},
		{"one that is available goes back too", "0o 1? 2", nil, []string{"-2", "+2", "-1", "+1"}, "web:1 web:1 web:1"},
		{"below the partition nobody is touched", "0o 1o 2?", is(partition(2)), []string{"-2", "+2"}, "web:1 web:1 web:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tooLate(t, c.pods, c.set...)
			old, latest := s.set.Status.CurrentRevision, s.set.Status.UpdateRevision
			said := "True UpdateFailed: the update to " + latest + " has failed (no progress for 1m0s: pod web-"
			if told := s.condition(RolledBack); s.set.Status.Failed != latest || !strings.HasPrefix(told, said) || !strings.HasSuffix(told, ": pods are of "+old+" until the template changes") {
				t.Fatalf("it has not given up: %q, %q", told, s.condition(Progressing))
			}
			if !slices.ContainsFunc(s.told, func(e string) bool { return strings.HasPrefix(e, "Warning RolledBack the update to "+latest) }) {
				t.Errorf("told %q", s.told)
			}
			if got := s.live(); !slices.Equal(got, c.want) {
				t.Errorf("%q, expected %q", got, c.want)
			}
			now := s.set.Status
			if s.madeFrom() != c.made || now.CurrentRevision != old || now.UpdateRevision != latest || now.Failed != latest {
				t.Errorf("%s; %+v", s.madeFrom(), now)
			}
			if !strings.HasPrefix(s.condition(Progressing), "False RolledBack: the update to "+latest+" has failed: pods are of "+old) || !strings.HasPrefix(s.condition(Stalled), "True RolledBack: the update to "+latest) || !strings.HasPrefix(s.condition(RolledBack), said) {
				t.Errorf("%q, %q, %q", s.condition(Progressing), s.condition(Stalled), s.condition(RolledBack))
			}
		})
	}
}

func TestAnUpdateDoesNotGoBackForOtherReasons(t *testing.T) {
	for _, c := range []struct {
		name, pods string
		set        []func(*Set)
	}{
		{"nobody asks for it", "0o 1o 2?", is(func(s *Set) { s.RollsBack = false })},
		{"a first roll-out has nothing before it", "0? 1? 2?", is(image("web:1"))},
		{"an update that old pods keep from beginning", "0o? 1o 2o", nil},
		{"an old pod is broken", "0o! 1 2", nil},
		{"one below the partition is broken", "0! 1o 2", is(partition(2))},
		{"it is paused", "0o 1o 2?", is(halts)},
		{"it is paused after its canary has halted", "0o 1o 2?", is(halts, enforced)},
		{"it is being deleted", "0o 1o 2?", is(deleting)},
		{"its template cannot be used", "0o 1o 2?", is(enforced, func(s *Set) { s.Fault = &Fault{Reason: "InvalidTemplate", Message: "no pod is replaced"} })},
		{"it is not too late", "0o 1o 2?", is(within(2 * time.Minute))},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tooLate(t, c.pods, c.set...)
			if s.set.Status.Failed != "" || s.condition(RolledBack) != "" {
				t.Errorf("%q, %q", s.set.Status.Failed, s.condition(RolledBack))
			}
		})
	}
}

// The canary of an enforced update halts the update long before the deadline.
func TestAnUpdateThatHaltsGoesBack(t *testing.T) {
	s := play(t, "0o 1o 2x", rollsBack, enforced, image("broken"))
	s.sync() // it has failed, and is recreated
	for range 3 {
		s.moveOn()
		s.sync()
	}
	s.is("web-2", "x")
	if s.sync(); s.set.Status.Failed == "" || !strings.Contains(s.condition(RolledBack), "(it has halted: pod web-2 is not available: Failed)") {
		t.Fatalf("%q, %q", s.condition(RolledBack), s.condition(UpdateStrategy))
	}
	if s.live(); s.madeFrom() != "web:1 web:1 web:1" {
		t.Errorf("%s", s.madeFrom())
	}
}

// aWorkingUpdate returns a set of five that is in the middle of an update. Its pods exist for far longer than
// the progress deadline, and have been ready ever since.
func aWorkingUpdate(t *testing.T, pods string, change ...func(*Set)) *fixture {
	t.Helper()
	s := play(t, pods, append([]func(*Set){rollsBack, replicas(5)}, change...)...)
	for _, p := range s.pods {
		p.CreationTimestamp.Time = s.now.Add(-20 * time.Minute)
	}
	s.sync()
	return s
}

// stops makes a pod stop being ready at this moment.
func (s *fixture) stops(name string) {
	s.is(name, "!")
	s.pods[name].Status.Conditions[0].LastTransitionTime.Time = s.now
}

// A pod that has worked since its creation and is not ready for a moment neither halts an enforced update nor
// rolls it back (ER-17): the deadline counts from when the pod stopped being ready.
func TestACanaryThatIsNotReadyForAMomentHaltsNothing(t *testing.T) {
	for name, change := range map[string]func(*Set){"Rollback": enforced, "Halt": func(s *Set) { enforced(s); s.RollsBack = false }} {
		t.Run(name, func(t *testing.T) {
			s := aWorkingUpdate(t, "0o 1o 2o 3o 4", change)
			s.stops("web-4")
			if s.sync(); s.outcome.Halted || s.condition(Stalled) != "" || s.set.Status.Failed != "" {
				t.Errorf("halted %t, Stalled %q, failed %q", s.outcome.Halted, s.condition(Stalled), s.set.Status.Failed)
			}
			if want := s.now.Add(time.Minute); s.outcome.Again.After(want) {
				t.Errorf("it looks again at %s, expected no later than %s", s.outcome.Again, want)
			}
			s.now = s.now.Add(time.Minute)
			if s.sync(); !s.outcome.Halted || s.condition(Stalled) == "" {
				t.Errorf("after the deadline: halted %t, Stalled %q", s.outcome.Halted, s.condition(Stalled))
			}
		})
	}
}

// A canary that no node can take at first may wait for a node that is being added: it has its deadline.
func TestACanaryThatWaitsForANodeHaltsNothing(t *testing.T) {
	for name, change := range map[string]func(*Set){"Rollback": enforced, "Halt": func(s *Set) { enforced(s); s.RollsBack = false }} {
		t.Run(name, func(t *testing.T) {
			s := aWorkingUpdate(t, "0o 1o 2o 3o 4", change)
			s.is("web-4", "?") // it was evicted, and has just been created again
			p := s.pods["web-4"]
			p.CreationTimestamp.Time = s.now
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
			s.now = s.now.Add(s.set.deadline() - time.Second)
			if s.sync(); s.outcome.Halted || s.condition(Stalled) != "" || s.set.Status.Failed != "" {
				t.Errorf("halted %t, Stalled %q, failed %q", s.outcome.Halted, s.condition(Stalled), s.set.Status.Failed)
			}
			s.now = s.now.Add(time.Second)
			if s.sync(); !s.outcome.Halted || s.condition(Stalled) == "" {
				t.Errorf("after the deadline: halted %t, Stalled %q", s.outcome.Halted, s.condition(Stalled))
			}
		})
	}
}

// A halt is over when the canary is available: the update goes on, and a canary that is not ready for a moment
// afterwards has a whole deadline again.
func TestAHaltEndsWhenTheCanaryIsAvailable(t *testing.T) {
	s := aWorkingUpdate(t, "0o 1o 2o 3o 4?", func(s *Set) { enforced(s); s.RollsBack = false })
	s.now = s.now.Add(2 * stuckAfter)
	if s.sync(); !strings.HasSuffix(s.condition(UpdateStrategy), halted) {
		t.Fatalf("not halted: %q", s.condition(UpdateStrategy))
	}
	s.is("web-4", "")
	if s.sync(); strings.HasSuffix(s.condition(UpdateStrategy), halted) || s.condition(Stalled) != "" {
		t.Errorf("with an available canary: %q, Stalled %q", s.condition(UpdateStrategy), s.condition(Stalled))
	}
	s.stops("web-4")
	if s.sync(); s.outcome.Halted || s.condition(Stalled) != "" {
		t.Errorf("the moment at which it is not ready: halted %t, Stalled %q", s.outcome.Halted, s.condition(Stalled))
	}
	s.now = s.now.Add(2 * stuckAfter)
	if s.sync(); !s.outcome.Halted {
		t.Errorf("after another deadline: %q", s.condition(UpdateStrategy))
	}
}

// A deadline that has passed for another reason, here a protected pod, leaves an updated pod as much time as
// ever: it may be not ready for a moment, be evicted and be recreated.
func TestAPodThatIsGoneForAMomentIsNoFailureOfTheUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		happens  func(*fixture)
		policies []func(*Set)
	}{
		"not ready":                  {func(s *fixture) { s.stops("web-4") }, []func(*Set){parallel, unavailable("1")}},
		"terminating":                {func(s *fixture) { s.is("web-4", "~") }, []func(*Set){parallel, unavailable("1")}},
		"gone":                       {func(s *fixture) { delete(s.pods, "web-4") }, []func(*Set){parallel, unavailable("1")}},
		"gone, and not yet its turn": {func(s *fixture) { delete(s.pods, "web-4") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := aWorkingUpdate(t, "0! 1o 2o 3o 4", append(c.policies, partition(1))...)
			if s.after(2 * time.Minute); !strings.Contains(s.condition(Progressing), deadlineExceeded) || s.set.Status.Failed != "" {
				t.Fatalf("%q, failed %q", s.condition(Progressing), s.set.Status.Failed)
			}
			c.happens(s)
			for range 3 {
				if s.sync(); s.set.Status.Failed != "" {
					t.Fatalf("rolled back: %q", s.condition(RolledBack))
				}
				s.after(time.Second)
			}
			if c.policies == nil {
				return // it is created when web-0 is available
			}
			delete(s.pods, "web-4")
			s.sync()
			s.is("web-4", "?")
			s.after(0)
			s.after(time.Minute)
			if want := s.pods["web-4"].CreationTimestamp.Add(time.Minute); !s.outcome.Again.Equal(want) || s.set.Status.Failed != "" {
				t.Errorf("it looks again at %s, expected at %s; failed %q", s.outcome.Again, want, s.set.Status.Failed)
			}
			if s.after(time.Second); s.set.Status.Failed == "" {
				t.Errorf("one that does not come back rolls nothing back: %q", s.condition(Progressing))
			}
		})
	}
}

// A pod that cannot be created is a failure of the update.
func TestAnUpdateWhosePodsAreRefusedGoesBack(t *testing.T) {
	s := play(t, "0o 1o", rollsBack, image("broken"))
	s.fails["+2"] = denied("web-2")
	s.sync()
	if s.after(time.Minute + time.Second); s.set.Status.Failed == "" {
		t.Errorf("%q", s.condition(Progressing))
	}
}

// backAgain returns a set at rest after a rollback.
func backAgain(t *testing.T) *fixture {
	t.Helper()
	s := tooLate(t, "0o 1o 2?")
	if s.live(); s.madeFrom() != "web:1 web:1 web:1" {
		t.Fatalf("%s", s.madeFrom())
	}
	return s
}

// A rollback lasts: over time, when a pod dies, when the set is scaled, and for a process that has only the
// status.
func TestWhatWentBackStaysThere(t *testing.T) {
	s := backAgain(t)
	latest := s.set.Status.UpdateRevision
	s.once = map[string]bool{} // another process
	for name, happens := range map[string]func(){
		"time passes":             func() { s.now = s.now.Add(24 * time.Hour) },
		"a pod dies":              func() { delete(s.pods, "web-2") },
		"it is scaled":            func() { replicas(5)(s.set) },
		"its history has no room": func() { s.set.Spec.RevisionHistoryLimit = new(int32) },
		"its conditions are lost": func() { s.set.Status.Told = nil },
	} {
		happens()
		s.live()
		if made := s.madeFrom(); strings.Contains(made, "broken") || s.set.Status.Failed != latest || s.revisions[latest] == nil || !meta.IsStatusConditionTrue(s.set.Status.Told, RolledBack) || len(s.told) > 0 {
			t.Fatalf("%s: %s, %+v, told %q", name, made, s.set.Status, s.told)
		}
	}
	if s.set.Status.CurrentReplicas != 5 || s.set.Status.UpdatedReplicas != 0 {
		t.Errorf("%+v", s.set.Status)
	}
}

// A template that cannot be used does not end a rollback: lost pods are recreated from the current revision.
func TestAReturnedOrdinalStaysWithAnUnusableTemplate(t *testing.T) {
	s := backAgain(t)
	failed := s.set.Status.Failed
	s.set.Fault = &Fault{Reason: "InvalidTemplate", Message: "no pod is replaced"} // and the template is that of the newest revision
	delete(s.pods, "web-2")
	if s.live(); s.madeFrom() != "web:1 web:1 web:1" || s.set.Status.Failed != failed || !strings.HasPrefix(s.condition(Progressing), "True InvalidTemplate") {
		t.Errorf("%s, %q, %q", s.madeFrom(), s.set.Status.Failed, s.condition(Progressing))
	}
}

// Another template is another update, the former template ends the rollback, and so does turning RollsBack
// off.
func TestAnotherTemplateIsTriedAfterOneThatFailed(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Set)
		made   string // when the set has come to rest, or waits for a pod
	}{
		{"a mended one", image("web:3"), "web:3 web:3 web:3"},
		{"the previous one", image("web:1"), "web:1 web:1 web:1"},
		{"no way back any more", func(s *Set) { s.RollsBack = false }, "web:1 web:1 broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := backAgain(t)
			c.change(s.set)
			if s.live(); s.madeFrom() != c.made || s.set.Status.Failed != "" || s.condition(RolledBack) != "" {
				t.Errorf("%s, expected %s; %q, %q", s.madeFrom(), c.made, s.set.Status.Failed, s.condition(RolledBack))
			}
		})
	}
	t.Run("one that fails as well", func(t *testing.T) {
		s := backAgain(t)
		first := s.set.Status.Failed
		image("broken:2")(s.set)
		if s.live(); s.madeFrom() != "web:1 web:1 broken:2" {
			t.Fatalf("%s", s.madeFrom())
		}
		s.now = s.now.Add(time.Hour)
		s.sync() // its own status triggers a reconcile
		if s.live(); s.madeFrom() != "web:1 web:1 web:1" || s.set.Status.Failed == first || s.set.Status.Failed == "" {
			t.Errorf("%s, %q and %q", s.madeFrom(), first, s.set.Status.Failed)
		}
	})
}

// A pod that becomes available after the decision does not reverse it.
func TestADecisionToGoBackStands(t *testing.T) {
	s := tooLate(t, "0 1 2?o 2?", parallel)
	old := s.set.Status.CurrentRevision
	s.is("web-2", "")
	s.expect("-2")
	if s.set.Status.CurrentRevision != old {
		t.Errorf("the current revision is %s, expected %s", s.set.Status.CurrentRevision, old)
	}
	if s.live(); s.madeFrom() != "web:1 web:1 web:1" {
		t.Errorf("%s", s.madeFrom())
	}
}

// A rollback has its own deadline, and each pod that it replaces is progress.
func TestTheWayBackHasItsTime(t *testing.T) {
	s := tooLate(t, "0o 1? 2?")
	if s.expect("-2"); !strings.HasPrefix(s.condition(Progressing), "True Waiting") {
		t.Errorf("%q when it begins", s.condition(Progressing))
	}
	for range 2 {
		s.now = s.now.Add(50 * time.Second)
		delete(s.pods, "web-2")
		if s.expect("+2"); !strings.HasPrefix(s.condition(Progressing), "True Waiting") {
			t.Fatalf("%q", s.condition(Progressing))
		}
		s.expect("")
	}
	if got := s.after(time.Minute); !strings.HasPrefix(got, "False ProgressDeadlineExceeded") {
		t.Errorf("%q", got)
	}
}

// No pod is rolled back before the decision is in the status.
func TestTheDecisionIsStoredFirst(t *testing.T) {
	s := play(t, "0o 1o 2?", rollsBack, image("broken"))
	s.sync()
	s.now, s.fails["status"] = s.now.Add(time.Minute+time.Second), errDead
	for range 3 {
		if did := s.sync(); did != "" || s.set.Status.Failed != "" {
			t.Fatalf("%q", did)
		}
	}
	delete(s.fails, "status")
	s.expect("")
	s.expect("-2")
}

// staysBack requires that a set is rolled back from its latest revision to an old one, and says so.
func (s *fixture) staysBack(old, latest string) {
	s.t.Helper()
	if now := s.set.Status; now.CurrentRevision != old || now.UpdateRevision != latest || now.Failed != latest || s.condition(Stalled) == "" || !strings.Contains(s.condition(RolledBack), "pods are of "+old) {
		s.t.Errorf("%+v", now)
	}
}

// The template stays ignored although another writer has deleted the revision that the pods were rolled back to: it is
// known to fail. No pod is replaced, and a missing one can only be made from it.
func TestAFailedUpdateDoesNotBeginAgainWithoutItsWayBack(t *testing.T) {
	for name, change := range map[string][]func(*Set){"in order": nil, "Parallel": {parallel}, "enforced": {enforced}} {
		t.Run(name, func(t *testing.T) {
			s := tooLate(t, "0o 1o 2?", append(change, unavailable("2"))...)
			s.live()
			old, latest := s.set.Status.CurrentRevision, s.set.Status.UpdateRevision
			delete(s.revisions, old)
			for range 3 {
				if got := s.sync(); got != "" || s.err == nil || !strings.Contains(s.err.Error(), "ControllerRevision "+old+", to which the pods were rolled back, no longer exists") {
					t.Errorf("got %q, %v", got, s.err)
				}
			}
			s.staysBack(old, latest)
			delete(s.pods, "web-2")
			if got := s.sync(); got != "+2" || s.pods["web-2"].Labels[appsv1.StatefulSetRevisionLabel] != latest {
				t.Errorf("got %q", got)
			}
			delete(s.pods, "web-2") // it is broken, and a RollingUpdate in order would wait for it
			image("web:3")(s.set)
			s.set.Generation++
			s.live()
			if got := s.madeFrom(); got != "web:3 web:3 web:3" || s.set.Status.Failed != "" || s.err != nil {
				t.Errorf("after a fixed template: %s, %v, %+v", got, s.err, s.set.Status)
			}
		})
	}
}
