package core

import (
	"errors"
	"strings"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

func conditioned(s *Set) { s.Conditioned = true }

// condition returns a condition in one line, or "".
func (s *fixture) condition(kind string) string {
	c := meta.FindStatusCondition(s.set.Status.Told, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func TestConditionsSayWhatIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		kind, want string
	}{
		{"RV-8 all is done", "0 1 2", nil, Progressing, "False Complete: 3 of 3 pods are available"},
		{"RV-8 not before they are available", "0 1 2", is(minReady(7200)), Progressing, "True Waiting: pod web-0 is not available: not ready, or not for long enough"},
		{"3335-63 the pod that blocks", "0 1? 2", nil, Progressing, "True Waiting: pod web-1 is not available: Pending"},
		{"3335-63 one that is terminating", "0~ 1 2", nil, Progressing, "True Waiting: pod web-0 is terminating"},
		{"SR-4 one that is to go", "0 1 2 3~", nil, Progressing, "True Waiting: pod web-3 is outside the range and still there"},
		{"one that is to be replaced", "0o 1o 2", is(partition(0)), Progressing, "True Waiting: pod web-1 is of revision web-5c66d9c7b7 and will be replaced"},
		{"PT-7 a partition is done when what is staged is", "0o 1 2", is(partition(1)), Progressing, "False Complete: 3 of 3 pods are available"},
		{"MU-15 OnDelete waits for nobody", "0o 1 2", is(onDelete), Progressing, "False Complete: 3 of 3 pods are available"},
		{"CL-8 while it is deleted", "0", is(deleting), Progressing, "True Deleting: the set is being deleted"},
		{"ER-18 3541-28", "0 1 2", is(enforced), UpdateStrategy, "True EnforcedRollingUpdate: "},
		{"ER-18 with the gate off", "0 1 2", is(enforced, traits(func(t *Traits) { t.NotEnforced = true })), UpdateStrategy, "True FeatureDisabled: "},
		{"ER-18 3541-28 RollingUpdate", "0 1 2", nil, UpdateStrategy, "True RollingUpdate: "},
		{"PT-5 3335-06 below the range", "3 4 5", is(start(3), partition(2)), PartitionOutOfRange, "True OutOfRange: the partition is 2, and the ordinals are from 3 to 5: it protects none of them"},
		{"PT-5 3335-06 above", "3 4 5", is(start(3), partition(7)), PartitionOutOfRange, "True OutOfRange: the partition is 7, and the ordinals are from 3 to 5: it protects all of them"},
		{"PT-5 all may be protected", "3 4 5", is(start(3), partition(6)), PartitionOutOfRange, ""},
		{"PT-5 0 is no partition", "3 4 5", is(start(3)), PartitionOutOfRange, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, append(c.set, conditioned)...)
			old := revisionOf(s.pods[sortedByName(s.pods)[0].Name])
			s.sync()
			if got, want := s.condition(c.kind), strings.ReplaceAll(c.want, "web-5c66d9c7b7", old); s.err != nil || got != want {
				t.Errorf("got %q, expected %q (%v)", got, want, s.err)
			}
		})
	}
	t.Run("without the trait there are none", func(t *testing.T) {
		s := play(t, "0 1 2")
		if s.sync(); len(s.set.Status.Told) > 0 {
			t.Errorf("%v", s.set.Status.Told)
		}
	})
	t.Run("CL-10 and ID-10 come and go", func(t *testing.T) {
		s := play(t, "0 1 2", conditioned)
		s.pods["web-2"].OwnerReferences[0].UID = "other"
		if s.sync(); !strings.HasPrefix(s.condition(IdentityConflict), "True NameTaken: pod web-2 exists and is controlled by StatefulSetSlice web") || !strings.HasPrefix(s.condition(Progressing), "True Failing: ") {
			t.Errorf("%q, %q", s.condition(IdentityConflict), s.condition(Progressing))
		}
		delete(s.pods, "web-2")
		claims("data")(s.set)
		if s.sync(); s.condition(IdentityConflict) != "" || !strings.HasPrefix(s.condition(StorageMismatch), "True OtherVolumes: pod web-0 does not mount claim data-web-0") {
			t.Errorf("%q, %q", s.condition(IdentityConflict), s.condition(StorageMismatch))
		}
	})
	t.Run("ST-6 those of others stay", func(t *testing.T) {
		s := play(t, "0 1 2", conditioned)
		s.set.Status.Told = []metav1.Condition{{Type: "Somebody", Status: metav1.ConditionTrue, Reason: "Else"}}
		s.sync()
		at := meta.FindStatusCondition(s.set.Status.Told, Progressing)
		s.now = s.now.Add(time.Hour)
		if s.sync(); s.condition("Somebody") == "" || !meta.FindStatusCondition(s.set.Status.Told, Progressing).LastTransitionTime.Equal(&at.LastTransitionTime) {
			t.Errorf("%v", s.set.Status.Told)
		}
	})
}

// kstatus returns the status that tools which do not know the kind derive from the conditions.
func (s *fixture) kstatus() kstatus.Status {
	s.t.Helper()
	slice := v1alpha1.StatefulSetSlice{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "StatefulSetSlice"}, ObjectMeta: s.set.ObjectMeta}
	slice.Generation, slice.Status.ObservedGeneration, slice.Status.Conditions = 1, 1, s.set.Status.Told
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&slice)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := kstatus.Compute(&unstructured.Unstructured{Object: raw})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Status
}

// Flux, Helm, Argo CD and the like do not know the kind and use kstatus.
func TestToolsThatKnowNoKindUnderstandTheConditions(t *testing.T) {
	for _, c := range []struct {
		name, pods string
		set        []func(*Set)
		happens    func(*fixture)
		want       kstatus.Status
	}{
		{"all is done", "0 1 2", nil, nil, kstatus.CurrentStatus},
		{"a pod that is not ready", "0 1? 2", nil, nil, kstatus.InProgressStatus},
		{"an update that goes on", "0o 1o 2", is(partition(0)), nil, kstatus.InProgressStatus},
		{"an enforced update that goes on", "0o 1o 2", is(enforced), nil, kstatus.InProgressStatus},
		{"3541-45 one that has halted", "0o 1o 2?", is(enforced), func(s *fixture) { s.now = s.now.Add(2 * stuckAfter) }, kstatus.FailedStatus},
		{"a name that somebody else has", "0 1 2", nil, func(s *fixture) { s.pods["web-2"].OwnerReferences[0].UID = "other" }, kstatus.FailedStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.pods, append(c.set, conditioned)...)
			if c.happens != nil {
				c.happens(s)
			}
			s.sync()
			if got := s.kstatus(); got != c.want {
				t.Errorf("%v, expected %s; conditions %v", got, c.want, s.set.Status.Told)
			}
		})
	}
}

// ER-16, ER-17, 3541-27, 3541-35 and 3541-45: each fixture is recorded once for a revision, also by a process
// that was started after the update.
func TestAnEnforcedUpdateIsToldOnce(t *testing.T) {
	s := play(t, "0o 1o 2o?", enforced, conditioned)
	s.pods["web-2"].CreationTimestamp.Time = s.now.Add(-time.Hour)
	events := func(reason string) int { return strings.Count(strings.Join(s.told, "\n"), " "+reason+" ") }
	if s.expect("-2"); events("EnforcedRollingUpdateStarted") != 1 || !strings.HasSuffix(s.condition(UpdateStrategy), begun) {
		t.Fatalf("told %q, %q", s.told, s.condition(UpdateStrategy))
	}
	if len(s.outcome.Forced) != 1 || s.outcome.Forced[0].Pod != "web-2" || s.outcome.Forced[0].Stuck != time.Hour {
		t.Errorf("MT-5 3541-33: %+v", s.outcome.Forced)
	}
	s.once = map[string]bool{} // another process
	delete(s.pods, "web-2")
	s.expect("+2")
	s.is("web-2", "?")
	s.now = s.now.Add(2 * settleTime)
	if s.expect(""); events("EnforcedRollingUpdateStarted")+events("EnforcedRollingUpdateHalted") != 0 || s.outcome.Halted || !s.outcome.Again.Equal(s.pods["web-2"].CreationTimestamp.Add(stuckAfter)) {
		t.Errorf("a pod that starts: told %q, looked at again at %s", s.told, s.outcome.Again)
	}
	s.pods["web-2"].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	if s.expect(""); events("EnforcedRollingUpdateHalted") != 1 || !s.outcome.Halted || !strings.HasSuffix(s.condition(UpdateStrategy), halted) {
		t.Errorf("told %q, %q", s.told, s.condition(UpdateStrategy))
	}
	if s.expect(""); events("EnforcedRollingUpdateHalted") != 0 || s.outcome.Halted {
		t.Errorf("told again %q", s.told)
	}
	reimaged(s, "web:3")
	if s.expect("create revision 3 -2"); events("EnforcedRollingUpdateStarted") != 1 {
		t.Errorf("another revision: told %q", s.told)
	}
}

func TestAnUpdateHaltsWhenItsHighestOrdinalTakesTooLong(t *testing.T) {
	late := play(t, "0o 1o 2?", enforced, conditioned)
	late.now = late.now.Add(stuckAfter + time.Minute)
	if late.sync(); !late.outcome.Halted {
		t.Errorf("ER-17: after %s it has not halted: %q", stuckAfter, late.condition(UpdateStrategy))
	}
	done := play(t, "0 1 2?", enforced, conditioned)
	done.now = done.now.Add(stuckAfter + time.Minute)
	if done.sync(); done.outcome.Halted {
		t.Error("ER-17: with nothing left to replace it has halted")
	}
}

// ST-9: the status has the range that its numbers are about.
func TestTheStatusHasTheRangeThatWasActedOn(t *testing.T) {
	for _, c := range []struct {
		start, replicas int32
		want            Range
	}{{0, 3, Range{0, 3}}, {3, 2, Range{3, 5}}, {7, 0, Range{7, 7}}, {2147483647, 1, Range{2147483647, 2147483648}}} {
		s := play(t, "", conditioned, start(c.start), replicas(c.replicas))
		s.sync()
		if got := s.set.Status.Ordinals; got == nil || *got != c.want {
			t.Errorf("%d from %d on: %v, expected %v", c.replicas, c.start, got, c.want)
		}
	}
	s := play(t, "0 1 2")
	if s.sync(); s.set.Status.Ordinals != nil {
		t.Error("a StatefulSet has no such field")
	}
}

// A set that cannot have its first revision, or whose orphans cannot be adopted, says so: nothing else would show why
// nothing happens. What the next look settles is not said.
func TestAPassThatEndsBeforeItsSpecSaysWhy(t *testing.T) {
	full := apierrors.NewForbidden(appsv1.Resource("controllerrevisions"), "web-1", errors.New("exceeded quota: few"))
	gone := apierrors.NewInternalError(errors.New("a webhook does not answer"))
	for name, c := range map[string]struct {
		fails                string
		err                  error
		stalled, reconciling bool
	}{
		"no revision":                   {"create revision 1", full, true, false},
		"no revision for a while":       {"create revision 1", gone, false, true},
		"a pod is not adopted":          {"adopt 2", full, true, false},
		"a revision is not adopted":     {"adopt revision 1", full, true, false},
		"a pod has changed":             {"adopt 2", apierrors.NewConflict(corev1.Resource("pods"), "web-2", errors.New("no")), false, false},
		"an error that is of no server": {"adopt 2", errors.New("no connection"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, "0 1 2", conditioned)
			map[string]func(){
				"create revision 1": func() { clear(s.revisions) },
				"adopt 2":           func() { s.pods["web-2"].OwnerReferences = nil },
				"adopt revision 1":  func() { s.revisions[s.set.Status.CurrentRevision].OwnerReferences = nil },
			}[c.fails]()
			s.fails[c.fails] = c.err
			s.sync()
			if got := s.condition(Stalled); s.err == nil || (got == "True Failing: "+c.err.Error()) != c.stalled || (got != "") != c.stalled {
				t.Errorf("Stalled is %q (%v)", got, s.err)
			}
			if got := s.condition(Reconciling); (got != "") != c.reconciling || (s.condition(Progressing) == "True Failing: "+c.err.Error()) != (c.stalled || c.reconciling) {
				t.Errorf("Reconciling is %q, Progressing %q", got, s.condition(Progressing))
			}
			if told := meta.FindStatusCondition(s.set.Status.Told, Stalled); s.set.Status.ObservedGeneration != 0 || told != nil && told.ObservedGeneration != 1 {
				t.Errorf("it counts as looked at, or the refusal is of another generation: %+v", told)
			}
			clear(s.fails)
			s.sync()
			if s.sync(); s.err != nil || s.condition(Progressing) != "False Complete: 3 of 3 pods are available" || s.condition(Stalled)+s.condition(Reconciling) != "" {
				t.Errorf("afterwards: %v, %q", s.err, s.condition(Progressing))
			}
		})
	}
}
