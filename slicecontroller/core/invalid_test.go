package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// For an invalid set the controller writes the condition, and nothing else: it could not keep the pods that
// it would create (VA-4, VA-9).
func TestInvalidSetsAreLeftAlone(t *testing.T) {
	for _, c := range []struct {
		rule, reason, message string
		change                func(*Set)
	}{
		{"CL-12 a selector that cannot be parsed", "InvalidSelector", "spec.selector cannot be parsed", func(s *Set) {
			s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
		}},
		{"VA-4 an empty selector", "EmptySelector", "spec.selector is empty: it would select every pod", func(s *Set) { s.Spec.Selector = &metav1.LabelSelector{} }},
		{"VA-4 no selector", "EmptySelector", "spec.selector is empty: it would select every pod", func(s *Set) { s.Spec.Selector = nil }},
		{"VA-4 a selector that does not match", "SelectorMismatch", "spec.selector app=shop does not match the labels of spec.template, which are app=web", func(s *Set) {
			s.Spec.Selector.MatchLabels = map[string]string{"app": "shop"}
		}},
		{"VA-4 pods that may end", "UnsupportedRestartPolicy", "spec.template.spec.restartPolicy is Never", func(s *Set) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever }},
		{"VA-4 pods that must end", "ActiveDeadline", "spec.template.spec.activeDeadlineSeconds is 60", func(s *Set) { s.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(60)) }},
	} {
		for _, policy := range []func(*Set){parallel, func(*Set) {}} {
			t.Run(c.rule, func(t *testing.T) {
				s := play(t, "0o 1x", policy, conditioned, claims("data"), retains("RD"))
				s.pods["web-1"].OwnerReferences = nil
				lone := s.revision(7)
				lone.Name, lone.OwnerReferences = "other-7", nil
				s.store(lone)
				was := *s.set.Spec.DeepCopy()
				s.set.Status.Replicas, s.set.Generation, s.set.RetainClaims = 2, 4, true
				c.change(s.set)
				if got := s.sync(); got != "" || !errors.Is(s.err, ErrInvalid) || len(s.told) > 0 {
					t.Errorf("it did %q (%v), told %q", got, s.err, s.told)
				}
				for _, kind := range []string{Invalid, Stalled, Progressing} {
					if got := s.condition(kind); !strings.HasPrefix(got, "True "+c.reason+": "+c.message) {
						t.Errorf("%s is %q", kind, got)
					}
				}
				if got := s.set.Status; got.ObservedGeneration != 4 || got.Replicas != 2 || s.condition(Reconciling) != "" {
					t.Errorf("%+v", got)
				}
				s.set.Spec = was
				if s.sync(); s.err != nil || s.condition(Invalid) != "" || s.condition(Stalled) != "" {
					t.Errorf("mended: %v, %q", s.err, s.condition(Invalid))
				}
			})
		}
	}
}

func TestTheConditionOfAnInvalidSet(t *testing.T) {
	t.Run("ST-8 a condition that cannot be written is tried again", func(t *testing.T) {
		s := play(t, "0", conditioned, func(s *Set) { s.Spec.Selector = nil })
		s.fails["status"] = errors.New("no")
		if s.sync(); !errors.Is(s.err, s.fails["status"]) || errors.Is(s.err, ErrInvalid) {
			t.Errorf("%v", s.err)
		}
	})
	t.Run("CL-12 without the trait there is no condition", func(t *testing.T) {
		s := play(t, "0", func(s *Set) { s.Spec.Selector = nil })
		if s.sync(); !errors.Is(s.err, ErrInvalid) || len(s.set.Status.Told) > 0 || s.set.Status.ObservedGeneration != 0 {
			t.Errorf("%v, %+v", s.err, s.set.Status)
		}
	})
}

// A message fits into the status however many pods fail, and however long each error is: the API server
// refuses a status with a message of more than 32 KiB.
func TestMessagesAreShort(t *testing.T) {
	s := play(t, "", parallel, replicas(500), conditioned)
	for k := range 500 {
		s.fails[fmt.Sprintf("+%d", k)] = full(fmt.Sprintf("web-%d", k))
	}
	for k := range 255 {
		delete(s.fails, fmt.Sprintf("+%d", k))
	}
	s.sync()
	if got := s.condition(Progressing); !strings.HasSuffix(got, "limited: pods=3, and 244 more") {
		t.Errorf("got %q", got)
	}
	s.fails["+255"] = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-255", errors.New(strings.Repeat("ä", 5000)))
	s.sync()
	for _, c := range s.set.Status.Told {
		if len(c.Message) > 1024 {
			t.Errorf("%s has %d bytes", c.Type, len(c.Message))
		}
	}
	if got := s.condition(Stalled); !strings.HasSuffix(got, "ää..., and 244 more") {
		t.Errorf("got %q", got)
	}
}

// A fault that passes by itself is no reason to alert a user (ST-9).
func TestOnlyWhatDoesNotMendByItselfIsStalled(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name    string
		err     error
		want    kstatus.Status
		message string
	}{
		{"a conflict", apierrors.NewConflict(pods, "web-2", errors.New("modified")), kstatus.InProgressStatus, ""},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), kstatus.InProgressStatus, ""},
		{"a server that fails", apierrors.NewInternalError(errors.New("etcd")), kstatus.InProgressStatus, ""},
		{"no connection", errors.New("connection refused"), kstatus.InProgressStatus, ""},
		{"a policy", denied("web-2"), kstatus.FailedStatus, denied("web-2").Error()},
		{"a quota", full("web-2"), kstatus.FailedStatus, full("web-2").Error()},
		{"an invalid pod", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-2", nil), kstatus.FailedStatus, `Pod "web-2" is invalid`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, "0 1", conditioned)
			s.fails["+2"] = c.err
			s.sync()
			if got := s.kstatus(); got != c.want || !strings.Contains(s.condition(Stalled), c.message) || !strings.HasPrefix(s.condition(Progressing), "True Failing: ") {
				t.Errorf("%s; %v", got, s.set.Status.Told)
			}
		})
	}
	t.Run("CL-10 an orphan that the cache still takes for another's", func(t *testing.T) {
		s := play(t, "0 1 2", conditioned)
		s.pods["web-2"].OwnerReferences = nil
		s.seen = func(w *World) { w.Pods[2].OwnerReferences = refs("StatefulSet", "web", "former", new(true)) }
		if got := s.sync(); got != "" || !errors.Is(s.err, ErrBehind) || s.kstatus() != kstatus.InProgressStatus || len(s.told) > 0 || s.condition(IdentityConflict) != "" {
			t.Errorf("got %q, %v, %s, told %q", got, s.err, s.kstatus(), s.told)
		}
	})
	t.Run("CL-10 an orphan that the selector does not select", func(t *testing.T) {
		s := play(t, "0 1 2", conditioned)
		s.pods["web-2"].OwnerReferences, s.pods["web-2"].Labels = nil, nil
		if s.sync(); s.kstatus() != kstatus.FailedStatus || !strings.Contains(s.condition(IdentityConflict), "controlled by no controller") {
			t.Errorf("%s, %v", s.kstatus(), s.set.Status.Told)
		}
	})
}

// A label is repaired in the same pass when another writer has changed the pod meanwhile (ID-4).
func TestARepairIsTriedAgain(t *testing.T) {
	s := play(t, "0 1 2", conditioned)
	delete(s.pods["web-1"].Labels, appsv1.PodIndexLabel)
	s.seen = func(w *World) { w.Pods[1].ResourceVersion = "old" }
	s.expect("update 1 update 1")
	if s.pods["web-1"].Labels[appsv1.PodIndexLabel] != "1" || len(s.told) != 1 || !strings.HasPrefix(s.told[0], "Normal SuccessfulUpdate ") {
		t.Errorf("%v, told %q", s.pods["web-1"].Labels, s.told)
	}
	older := func(change func(*corev1.PersistentVolumeClaim)) *fixture {
		s := play(t, "0 1 2", claims("data"), retains("RR"))
		retains("RD")(s.set)
		s.seen = func(w *World) {
			was := w.Claim
			w.Claim = func(name string) *corev1.PersistentVolumeClaim {
				c := was(name)
				if c != nil && name == "data-web-1" {
					c = c.DeepCopy()
					change(c)
				}
				return c
			}
		}
		return s
	}
	claimed := older(func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "old" })
	claimed.expect("update data-web-0 update data-web-1 update data-web-1 update data-web-2")
	if len(claimed.claims["data-web-1"].OwnerReferences) != 1 || strings.Contains(strings.Join(claimed.told, " "), "Failed") {
		t.Errorf("%v, told %q", claimed.claims["data-web-1"].OwnerReferences, claimed.told)
	}
	replaced := play(t, "0 1 2")
	delete(replaced.pods["web-1"].Labels, appsv1.PodIndexLabel)
	replaced.seen = func(w *World) { w.Pods[1].ResourceVersion, w.Pods[1].UID = "old", "former" }
	if got := replaced.sync(); got != "update 1" || !apierrors.IsConflict(replaced.err) {
		t.Errorf("a namesake: got %q, %v", got, replaced.err)
	}
	recreated := older(func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion, c.UID = "old", "former" })
	if got := recreated.sync(); got != "update data-web-0 update data-web-1" || !apierrors.IsConflict(recreated.err) || len(recreated.claims["data-web-1"].OwnerReferences) > 0 {
		t.Errorf("a claim of the same name: got %q, %v", got, recreated.err)
	}
}

// A crash loop changes the conditions only once: each write of the status triggers a reconcile.
func TestACrashLoopIsToldOnce(t *testing.T) {
	for _, pods := range []string{"0 1 2!", "0o 1o 2!"} {
		s := play(t, pods, enforced, conditioned)
		restarts, told := int32(1), map[string]bool{}
		for range 3 {
			for _, state := range []corev1.ContainerState{
				{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				{Running: &corev1.ContainerStateRunning{}},
				{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			} {
				s.pods["web-2"].Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "web", State: state, RestartCount: restarts, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
				}}
				s.expect("")
				told[fmt.Sprint(s.condition(Progressing), s.condition(Stalled), s.condition(Reconciling), s.condition(UpdateStrategy))] = true
			}
			restarts++
		}
		if len(told) != 1 {
			t.Errorf("%s: %v", pods, told)
		}
	}
	s := play(t, "0 1 2?", conditioned)
	s.now = s.now.Add(2 * settleTime)
	told := map[string]bool{}
	for _, why := range []string{"ErrImagePull", "ImagePullBackOff", "ErrImagePull"} {
		s.pods["web-2"].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}}}
		s.expect("")
		told[s.condition(Progressing)] = true
	}
	if !told["True Waiting: pod web-2 is not available: ImagePullBackOff"] || len(told) != 1 {
		t.Errorf("%v", told)
	}
}

// A refused claim stalls the set: a user has to act, also when the reason is a full quota.
func TestARefusedClaimIsKnownForWhatItIs(t *testing.T) {
	s := play(t, "0 1", claims("data"), conditioned)
	full := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-web-2", errors.New("exceeded quota: disks"))
	s.fails["create data-web-2"] = full
	s.sync()
	if !apierrors.IsForbidden(s.err) || s.condition(Stalled) == "" {
		t.Errorf("%v, stalled %q", s.err, s.condition(Stalled))
	}
}
