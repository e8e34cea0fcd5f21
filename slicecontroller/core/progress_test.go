package core

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func halts(s *Set)                      { s.Paused = true }
func within(d time.Duration) func(*Set) { return func(s *Set) { s.Deadline = d } }

func TestAPausedSetReplacesNoPodForAnUpdate(t *testing.T) {
	for _, c := range []struct {
		name, pods string
		set        []func(*Set)
		want       string // while the set is paused
		then       string // after it is resumed
	}{
		{"in order", "0o 1o 2o", nil, "", "-2"},
		{"Parallel", "0o 1o! 2o", is(parallel), "", "-1"},
		{"enforced", "0o 1o 2o!", is(enforced), "", "-2"},
		{"on its way", "0o 1o 2", is(unavailable("2")), "", "-1 -0"},
		{"a pod that is gone is made again, of the new revision", "0o 1o", nil, "+2", "+2"},
		{"one that has failed is replaced", "0o 1ox 2o", nil, "-1", "-1"},
		{"one that has failed is replaced where the update would have seen to it", "0o 1ox 2", is(enforced), "-1", "-1"},
		{"it is made larger", "0o 1o 2o", is(replicas(4)), "+3", "+3"},
		{"it is made smaller", "0o 1o 2o", is(replicas(2)), "-2", "-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.pods, append(c.set, conditioned, halts)...)
			if s.expect(c.want); !strings.HasPrefix(s.condition(Progressing), "Unknown Paused: the update is paused: no pod is replaced for it; pod web-") || !strings.HasPrefix(s.condition(Reconciling), "True Paused: ") {
				t.Errorf("%q, %q", s.condition(Progressing), s.condition(Reconciling))
			}
			if made := s.pods["web-2"]; c.want == "+2" && revisionOf(made) != s.set.Status.UpdateRevision {
				t.Errorf("pod web-2 is of %s, expected %s", revisionOf(made), s.set.Status.UpdateRevision)
			}
			s = play(t, c.pods, append(c.set, conditioned)...)
			s.expect(c.then)
		})
	}
}

func TestAPausedSetAtRestIsPaused(t *testing.T) {
	s := play(t, "0 1 2", conditioned, halts)
	if s.expect(""); s.condition(Progressing) != "Unknown Paused: the update is paused: no pod is replaced for it" || s.condition(Reconciling) != "" {
		t.Errorf("%q, %q", s.condition(Progressing), s.condition(Reconciling))
	}
}

// after makes a pass some time later, and returns the condition Progressing.
func (s *fixture) after(d time.Duration) string {
	s.now = s.now.Add(d)
	s.sync()
	return s.condition(Progressing)
}

func TestASetThatComesNoNearerIsTold(t *testing.T) {
	const slow = "False ProgressDeadlineExceeded: no progress for 1m0s: pod web-1 is not available: Pending"
	for _, c := range []struct {
		name, pods string
		set        []func(*Set)
		want       string // of a pass a minute after the first
	}{
		{"a pod that does not become available", "0 1? 2", nil, slow},
		{"in an update", "0o 1? 2", nil, slow},
		{"not of a set that says nothing, whose time is longer", "0 1? 2", is(within(0)), "True Waiting: pod web-1 is not available: Pending"},
		{"not of one at rest", "0 1 2", nil, "False Complete: 3 of 3 pods are available"},
		{"not of one that is paused", "0 1? 2", is(halts), "Unknown Paused: the update is paused: no pod is replaced for it; pod web-1 is not available: Pending"},
		{"not of one that is deleted", "0 1? 2", is(deleting), "True Deleting: the set is being deleted"},
		{"not while a pod only has to stay ready", "0 1 2", is(minReady(3700)), "True Waiting: pod web-0 is not available: not ready, or not for long enough"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.pods, append([]func(*Set){conditioned, within(time.Minute)}, c.set...)...)
			if early := s.after(0); strings.Contains(early, deadlineExceeded) {
				t.Errorf("at once: %q", early)
			}
			if early := s.after(time.Minute - time.Second); strings.Contains(early, deadlineExceeded) {
				t.Errorf("too early: %q", early)
			}
			if got := s.after(time.Second); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
			if stalled := s.condition(Stalled) != ""; stalled != (c.want == slow) {
				t.Errorf("Stalled %q", s.condition(Stalled))
			}
		})
	}
}

// A set that is being deleted has no deadline, so the time is not recorded: each pass would write the status.
func TestADeletionWritesNoTime(t *testing.T) {
	for name, protect := range map[string]func(*Set){"at once": func(*Set) {}, "held": func(s *Set) { s.Protected, s.Finalizers = true, []string{Protection} }} {
		s := play(t, "0 1 2!", conditioned, within(time.Minute), deleting, protect)
		s.after(0)
		was := s.set.Status
		for range 3 {
			if s.after(time.Second); !equality.Semantic.DeepEqual(was, s.set.Status) {
				t.Fatalf("%s: the status is written again, with the time %s after %s", name, s.set.Status.Progressed, was.Progressed)
			}
		}
	}
}

func TestAPassComesWhenTheDeadlineHasPassed(t *testing.T) {
	s := play(t, "0 1? 2", conditioned, within(time.Minute))
	s.now = s.now.Add(2 * settleTime)
	if s.expect(""); !s.outcome.Again.Equal(s.now.Add(time.Minute)) {
		t.Errorf("it looks again at %s, expected a minute after %s", s.outcome.Again, s.now)
	}
	s.now = s.now.Add(time.Hour)
	if s.expect(""); !s.outcome.Again.IsZero() {
		t.Errorf("it looks again at %s, and nothing comes by itself any more", s.outcome.Again)
	}
}

// A terminating pod has its grace period before it counts against the deadline.
func TestTheGraceOfAPodIsNotLost(t *testing.T) {
	s := play(t, "0 1~ 2", conditioned, within(time.Minute))
	s.pods["web-1"].DeletionTimestamp = &metav1.Time{Time: s.now.Add(time.Hour)}
	if s.after(0); strings.Contains(s.after(time.Hour), deadlineExceeded) {
		t.Errorf("%q in its grace", s.condition(Progressing))
	}
	if got := s.after(time.Minute); !strings.Contains(got, deadlineExceeded) {
		t.Errorf("%q a minute after it", got)
	}
}

// Another process continues to count, and progress restarts the time.
func TestProgressLetsTheTimeBeginAnew(t *testing.T) {
	const exceeded, goes = "False ProgressDeadlineExceeded", "True Waiting"
	begun := func(t *testing.T) *fixture {
		t.Helper()
		s := play(t, "0o 1! 2!", conditioned, parallel, within(time.Minute))
		if s.after(0); s.condition(Progressing) == "" {
			t.Fatal("no condition")
		}
		return s
	}
	for name, c := range map[string]struct {
		happens func(*fixture)
		want    string
	}{
		"nothing happens":        {func(*fixture) {}, exceeded},
		"a pod becomes ready":    {func(s *fixture) { s.is("web-2", "") }, goes},
		"one is made again":      {func(s *fixture) { delete(s.pods, "web-2"); s.sync(); s.is("web-2", "?") }, goes},
		"another template comes": {func(s *fixture) { reimaged(s, "web:3") }, goes},
		"it was paused": {func(s *fixture) {
			halts(s.set)
			s.sync()
			s.set.Paused = false
		}, goes},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			s.now = s.now.Add(time.Minute)
			c.happens(s)
			if got := s.after(0); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, expected %s", got, c.want)
			}
		})
	}
	t.Run("after the deadline too", func(t *testing.T) {
		s := begun(t)
		if got := s.after(time.Minute); !strings.HasPrefix(got, exceeded) {
			t.Fatalf("got %q", got)
		}
		s.is("web-2", "")
		if got := s.after(0); !strings.HasPrefix(got, goes) || s.condition(Stalled) != "" {
			t.Errorf("%q, %q", got, s.condition(Stalled))
		}
	})
	t.Run("what was at rest has its whole time", func(t *testing.T) {
		s := play(t, "0 1 2", conditioned, within(time.Minute))
		s.is("web-1", "!")
		s.after(0)
		s.is("web-1", "")
		s.after(0)
		s.is("web-1", "!")
		if got := s.after(24 * time.Hour); !strings.HasPrefix(got, goes) {
			t.Errorf("%q", got)
		}
		if got := s.after(time.Minute); !strings.HasPrefix(got, exceeded) {
			t.Errorf("%q", got)
		}
	})
}

// A canary that is ready and waits for minReadySeconds does not halt the update.
func TestAnEnforcedUpdateDoesNotHaltForMinReadySeconds(t *testing.T) {
	s := play(t, "0o 1o 2", enforced, conditioned, minReady(7200), within(time.Minute))
	s.now = s.now.Add(30 * time.Minute)
	if s.sync(); s.outcome.Halted || meta.IsStatusConditionTrue(s.set.Status.Told, Stalled) {
		t.Errorf("halted: %q", s.condition(UpdateStrategy))
	}
	s.pods["web-2"].Status.Conditions[0].Status = corev1.ConditionFalse
	if s.sync(); !s.outcome.Halted {
		t.Errorf("not halted: %q", s.condition(UpdateStrategy))
	}
}
