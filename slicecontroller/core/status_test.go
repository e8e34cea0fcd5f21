package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheStatusCountsPods(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		want       [5]int32 // replicas, ready, available, current, updated
	}{
		{"ST-1 all", "0 1 2", nil, [5]int32{3, 3, 3, 3, 3}},
		{"ST-1 condemned ones too", "0 1 2 3", nil, [5]int32{4, 4, 4, 4, 4}},
		{"ST-1 not those of this pass", "0 1", nil, [5]int32{2, 2, 2, 2, 2}},
		{"ST-1 terminating ones are replicas, and ready while they are", "0 1 2~", nil, [5]int32{3, 3, 3, 2, 2}},
		{"ST-1 2599-05 2599-21 961-54 ready is not available", "0 1 2", is(minReady(7200)), [5]int32{3, 3, 0, 3, 3}},
		{"AVAIL-1 a failed one is neither", "0 1 2x", is(deleting), [5]int32{3, 2, 2, 3, 3}},
		{"ST-2 during an update", "0o 1o 2!", nil, [5]int32{3, 2, 2, 2, 1}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			s.sync()
			got := s.set.Status
			if diff := cmp.Diff(c.want, [5]int32{got.Replicas, got.ReadyReplicas, got.AvailableReplicas, got.CurrentReplicas, got.UpdatedReplicas}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheStatusIsWrittenWhenItTellsSomethingNew(t *testing.T) {
	s := play(t, "0 1 2")
	foreign := []appsv1.StatefulSetCondition{{Type: "Somebody", Status: "True"}}
	s.set.Status.Conditions = foreign
	s.sync()
	if diff := cmp.Diff(foreign, s.set.Status.Conditions); diff != "" {
		t.Errorf("ST-6: %s", diff)
	}
	no := errors.New("written")
	s.fails["status"] = no
	if s.sync(); s.err != nil {
		t.Errorf("ST-5: written again: %v", s.err)
	}
	s.set.Generation = 2
	if s.sync(); !errors.Is(s.err, no) {
		t.Errorf("ST-4: not written for a new generation: %v", s.err)
	}
	s.set.Generation, s.set.Status.ObservedGeneration = 2, 3 // a late observation
	if s.sync(); s.err != nil {
		t.Errorf("ST-4: it falls: %v", s.err)
	}
}

func TestAvailabilityIsATime(t *testing.T) {
	for _, c := range []struct {
		rule string
		ago  time.Duration
		min  int32
		want bool
		wait time.Duration // until the next reconcile
	}{
		{"AV-1 2599-03 at once", 0, 0, true, 0},
		{"2599-02 2599-11 2599-26 a millisecond before", 10*time.Second - time.Millisecond, 10, false, time.Millisecond},
		{"2599-11 2599-12 at the time", 10 * time.Second, 10, true, 0},
		{"AV-7 2599-28 of a clock that is ahead", -5 * time.Second, 10, false, 15 * time.Second},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0 1 2", minReady(c.min))
			for _, p := range s.pods {
				p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon().Add(-c.ago))
			}
			s.sync()
			if got := s.set.Status.AvailableReplicas == 3; got != c.want {
				t.Errorf("available: %t, expected %t", got, c.want)
			}
			if got := s.outcome.Again; got.IsZero() != (c.wait == 0) || !got.IsZero() && got.Sub(noon()) != c.wait {
				t.Errorf("SY-5: looked at again at %s, expected after %s", got, c.wait)
			}
		})
	}
	t.Run("AV-2 2599-27 without a time never", func(t *testing.T) {
		s := play(t, "0 1 2", minReady(1))
		s.pods["web-1"].Status.Conditions[0].LastTransitionTime = metav1.Time{}
		if s.sync(); s.set.Status.AvailableReplicas != 2 || !s.outcome.Again.IsZero() {
			t.Errorf("%+v %v", s.set.Status, s.outcome.Again)
		}
	})
	t.Run("AV-4 2599-19 the field acts on what runs, and restarts nothing", func(t *testing.T) {
		s := play(t, "0 1 2")
		minReady(7200)(s.set)
		if s.expect(""); s.set.Status.AvailableReplicas != 0 {
			t.Errorf("%+v", s.set.Status)
		}
		minReady(0)(s.set)
		if s.expect(""); s.set.Status.AvailableReplicas != 3 {
			t.Errorf("%+v", s.set.Status)
		}
	})
}

// 2599-25: the time of a pod passes while the API server answers nothing, and does not begin anew.
func TestTheTimeOfAPodPassesInAnOutage(t *testing.T) {
	s := play(t, "0 1 2", minReady(10))
	for _, p := range s.pods {
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(s.now)
	}
	s.fails["status"] = errors.New("connection refused")
	for range 3 {
		if s.sync(); s.err == nil || s.set.Status.AvailableReplicas != 0 {
			t.Fatalf("%v %+v: expected that nothing is written in the outage", s.err, s.set.Status)
		}
		s.now = s.now.Add(5 * time.Second)
	}
	delete(s.fails, "status")
	if s.sync(); s.err != nil || s.set.Status.AvailableReplicas != 3 {
		t.Errorf("%v %+v: the time has begun anew", s.err, s.set.Status)
	}
}

// A pass in order that creates or deletes a pod leaves the numbers to the pass that sees the result: half of all
// writes of the status would be superseded at once. What lasts is written by the pass that decides it (ST-5).
func TestNumbersWaitForTheResultOfTheirPass(t *testing.T) {
	for _, c := range []struct {
		name, pods, does string
		set              []func(*Set)
		before           func(*fixture)
		written          bool
	}{
		{"a pod that is created", "0 1", "+2", is(conditioned), nil, false},
		{"one that is deleted for an update", "0o 1o 2", "-1", is(conditioned), nil, false},
		{"one outside the range", "0 1 2 3", "-3", is(conditioned), nil, false},
		{"nothing is created", "0 1?", "", is(conditioned), nil, true},
		{"without an order", "0 1", "+2", is(conditioned, parallel), nil, true},
		{"a StatefulSet", "0 1", "+2", nil, nil, true},
		{"another generation", "0 1", "+2", is(conditioned), func(s *fixture) { s.set.Generation++ }, true},
		{"another template", "0 1", "create revision 2 +2", is(conditioned), func(s *fixture) { reimaged(s, "web:2") }, true},
		{"it was at rest", "0 1", "+2", is(conditioned), func(s *fixture) {
			s.had(Progressing, metav1.ConditionFalse, complete)
		}, true},
		{"another condition", "0 1", "+2", is(conditioned), func(s *fixture) { s.had(PartitionOutOfRange, metav1.ConditionTrue, "OutOfRange") }, true},
		{"the stage of an enforced update", "0o 1o 2o", "-2", is(conditioned, enforced), nil, true},
		{"a pod that cannot be created", "0 1", "+2", is(conditioned), func(s *fixture) { s.fails["+2"] = denied("web-2") }, true},
		{"a pod that is gone already", "0 1 2x", "-2", is(conditioned), func(s *fixture) {
			s.fails["-2"] = apierrors.NewNotFound(corev1.Resource("pods"), "web-2")
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, "0?", c.set...)
			s.sync() // the status of a set that is waited for
			s = s.replayed(c.pods, c.set...)
			if c.before != nil {
				c.before(s)
			}
			no := errors.New("written")
			s.fails["status"] = no
			if did := s.sync(); did != c.does || errors.Is(s.err, no) != c.written {
				t.Errorf("it did %q and wrote a status: %t (%v)", did, errors.Is(s.err, no), s.err)
			}
		})
	}
	t.Run("the next pass writes them", func(t *testing.T) {
		s := play(t, "0 1?", conditioned)
		s.sync()
		s.moveOn()
		s.expect("+2")
		if got := s.set.Status; got.ReadyReplicas != 1 {
			t.Errorf("%+v", got)
		}
		if s.expect(""); s.set.Status.ReadyReplicas != 2 || s.set.Status.Replicas != 3 || !strings.Contains(s.condition(Progressing), "pod web-2 is not available: Pending") {
			t.Errorf("%+v", s.set.Status)
		}
	})
}

// had sets a condition of the stored status.
func (s *fixture) had(kind string, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&s.set.Status.Told, metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(s.now)})
}

// replayed returns a fixture with other pods and the status that the set of this one has.
func (s *fixture) replayed(pods string, change ...func(*Set)) *fixture {
	next := play(s.t, pods, change...)
	revisions := [2]string{next.set.Status.CurrentRevision, next.set.Status.UpdateRevision}
	next.set.Status = s.set.Status
	next.set.Status.CurrentRevision, next.set.Status.UpdateRevision = revisions[0], revisions[1]
	return next
}

// While a pod has just been created, its phase says enough: it passes through several reasons within moments, and
// each would be a write of the status and another pass.
func TestAReasonIsNamedWhenItLasts(t *testing.T) {
	unschedulable := func(s *fixture) {
		s.pods["web-2"].Status.Conditions = append(s.pods["web-2"].Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
	}
	s := play(t, "0 1 2?", conditioned)
	unschedulable(s)
	s.expect("")
	born := s.pods["web-2"].CreationTimestamp.Time
	if got := s.condition(Progressing); got != "True Waiting: pod web-2 is not available: Pending" || !s.outcome.Again.Equal(born.Add(settleTime)) {
		t.Errorf("%q, again at %s", got, s.outcome.Again)
	}
	s.now = s.outcome.Again
	s.expect("")
	if got := s.condition(Progressing); got != "True Waiting: pod web-2 is not available: Unschedulable" || s.outcome.Again.Before(s.now.Add(time.Minute)) {
		t.Errorf("%q, again at %s", got, s.outcome.Again)
	}
	s = play(t, "0 1 2!", conditioned)
	s.pods["web-2"].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	if s.expect(""); !strings.HasSuffix(s.condition(Progressing), "CrashLoopBackOff") {
		t.Errorf("a pod that runs: %q", s.condition(Progressing))
	}
	s = play(t, "0 1 2?")
	if s.expect(""); !s.outcome.Again.IsZero() {
		t.Errorf("a StatefulSet is looked at again at %s, and has no condition", s.outcome.Again)
	}
}

// An error may have other words at each attempt, such as the number of a request. Each write of the status wakes
// the set at once, so a status that follows the words would turn the back-off into a loop.
func TestAFailureInOtherWordsIsWrittenOnceAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		set      []func(*Set)
		fails    func(s *fixture, attempt int)
		at, pods string
	}{
		"a creation": {is(conditioned), func(s *fixture, n int) {
			s.fails["+2"] = apierrors.NewForbidden(corev1.Resource("pods"), "web-2", fmt.Errorf("attempt %d", n))
		}, Progressing, "0 1"},
		"a creation, by turns for good and for now": {is(conditioned), func(s *fixture, n int) {
			s.fails["+2"] = fmt.Errorf("attempt %d", n)
			if n%2 == 0 {
				s.fails["+2"] = apierrors.NewForbidden(corev1.Resource("pods"), "web-2", s.fails["+2"])
			}
		}, Progressing, "0 1"},
		"a claim that is kept": {is(conditioned, claims("data"), retains("RD")), func(s *fixture, n int) {
			held(s.set)
			s.fails["update data-web-0"] = fmt.Errorf("attempt %d", n)
		}, ClaimsNotKept, "0 1 2"},
		"an eviction that a webhook puts off": {is(conditioned, traits(func(t *Traits) { t.Evicts = true })), func(s *fixture, n int) {
			s.fails["evict 2"] = apierrors.NewTooManyRequests(fmt.Sprintf("attempt %d", n), 1)
		}, EvictionRefused, "0o 1o 2o"},
		"a template": {is(conditioned), func(s *fixture, n int) {
			s.set.Fault = &Fault{Reason: "TemplateNotTried", Message: fmt.Sprintf("attempt %d", n), Passing: true}
		}, Progressing, "0o 1o 2"},
		"a template of a set without revisions": {is(conditioned), func(s *fixture, n int) {
			clear(s.revisions)
			s.set.Fault = &Fault{Reason: "TemplateNotTried", Message: fmt.Sprintf("attempt %d", n)}
		}, Progressing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			writes := 0
			for n := range 200 {
				was := s.set.Status
				c.fails(s, n)
				if s.sync(); !equality.Semantic.DeepEqual(was, s.set.Status) {
					writes++
				}
				s.now = s.now.Add(time.Second)
			}
			if writes < 3 || writes > 5 {
				t.Errorf("%d writes in 200 seconds", writes)
			}
			if got := s.condition(c.at); !strings.Contains(got, "attempt 18") {
				t.Errorf("the last words are %q", got)
			}
		})
	}
}

// What has changed besides the words of an error is written at once.
func TestWhatIsMoreThanWordsIsWrittenAtOnce(t *testing.T) {
	halting := play(t, "0o 1o 2?", enforced, conditioned, claims("data"), retains("RD"))
	held(halting.set)
	halting.fails["update data-web-0"] = errors.New("no")
	halting.sync()
	halting.is("web-2", "x")
	if halting.sync(); !halting.outcome.Halted {
		t.Error("it has not halted")
	}
	if halting.sync(); halting.outcome.Halted {
		t.Error("it has halted again")
	}
	s := play(t, "0 1 2?", parallel, conditioned, replicas(4))
	s.fails["+3"] = errors.New("no")
	s.sync()
	for _, c := range []struct {
		name    string
		happens func()
	}{
		{"a number", func() { s.is("web-2", "") }},
		{"a generation", func() { s.set.Generation++ }},
		{"a condition", func() { partition(9)(s.set) }},
		{"the end of the failure", func() { delete(s.fails, "+3") }},
	} {
		was := s.set.Status
		c.happens()
		if s.sync(); equality.Semantic.DeepEqual(was, s.set.Status) {
			t.Errorf("%s is not written", c.name)
		}
	}
}
