package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func reimaged(s *fixture, image string) {
	s.set.Spec.Template.Spec.Containers[0].Image = image
	s.set.Generation++
}

func TestTheDocumentOfARevision(t *testing.T) {
	s := play(t, "", func(s *Set) { s.Annotations = map[string]string{"team": "shop"} })
	r := s.revision(1)
	const want = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:1","name":"web","resources":{}}]}}}}`
	if got := string(r.Data.Raw); got != want {
		t.Errorf("RV-1: got\n%s\nexpected\n%s", got, want)
	}
	hash := r.Labels[RevisionHash]
	if r.Name != "web-"+hash || hash == "" || r.Labels["app"] != "web" || r.Annotations["team"] != "shop" || !metav1.IsControlledBy(r, s.set) {
		t.Errorf("RV-2: %+v", r.ObjectMeta)
	}
	if again, _ := s.set.newRevision(1, 1); again.Name == r.Name {
		t.Error("RV-2: the count of collisions is not in the name")
	}
	s.set.Name = strings.Repeat("w", 240)
	if long, _ := s.set.newRevision(1, 0); !strings.HasPrefix(long.Name, strings.Repeat("w", 223)+"-") || strings.HasPrefix(long.Name, strings.Repeat("w", 224)) {
		t.Errorf("RV-2: %s", long.Name)
	}
}

func TestRevisionsAreResolved(t *testing.T) {
	t.Run("RV-3a the newest", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.expect("")
	})
	t.Run("RV-3b an older one becomes the newest", func(t *testing.T) {
		s := play(t, "0 1 2")
		first := s.set.Status.UpdateRevision
		reimaged(s, "web:2")
		s.live()
		reimaged(s, "web:1")
		if got := s.sync(); got != "update revision 3 -2" || s.set.Status.UpdateRevision != first || s.revisions[first].Revision != 3 {
			t.Errorf("%q %+v %v", got, s.set.Status, s.err)
		}
	})
	t.Run("RV-3c a new default restarts nothing", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.defaults = func(t *corev1.PodTemplateSpec) { t.Spec.SchedulerName = "default-scheduler" }
		s.defaults(&s.set.Spec.Template)
		s.expect("")
		s.fails["default"] = errors.New("no answer")
		if got := s.sync(); got != "" || s.err == nil {
			t.Errorf("a guess: %q %v", got, s.err)
		}
		s.fails["default"] = apierrors.NewInvalid(schema.GroupKind{}, "web", nil)
		if got := s.sync(); got != "create revision 2 -2" {
			t.Errorf("an old template that is no longer valid: %q %v", got, s.err)
		}
	})
	t.Run("RV-3d a new one", func(t *testing.T) {
		s := play(t, "0 1 2")
		reimaged(s, "web:2")
		s.expect("create revision 2 -2")
	})
	t.Run("RV-6 CR is the one in the status", func(t *testing.T) {
		s := play(t, "0o 1o", partition(3))
		s.set.Status.CurrentRevision = "another"
		s.expect("+2")
		if got := s.pods["web-2"].Spec.Containers[0].Image; got != "web:2" {
			t.Errorf("without CR it is made of %s", got)
		}
	})
}

// A namespace may refuse PodTemplates, and so the defaults of a template. An update begins all the same, unless
// the template may differ by new defaults alone.
func TestAnUpdateBeginsWherePodTemplatesAreRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("podtemplates"), "", errors.New("exceeded quota"))
	for name, change := range map[string]func(*corev1.PodSpec){
		"another image":               func(s *corev1.PodSpec) { s.Containers[0].Image = "web:2" },
		"another container":           func(s *corev1.PodSpec) { s.Containers = append(s.Containers, corev1.Container{Name: "log"}) },
		"fewer containers":            func(s *corev1.PodSpec) { s.InitContainers = nil },
		"a field, and one less":       func(s *corev1.PodSpec) { s.SchedulerName, s.HostNetwork = "another", false },
		"a variable before the other": func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "B"}, {Name: "A"}} },
	} {
		t.Run("RV-3d "+name, func(t *testing.T) {
			s := play(t, "", func(s *Set) {
				s.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first"}}
				s.Spec.Template.Spec.HostNetwork, s.Spec.Template.Spec.Containers[0].Env = true, []corev1.EnvVar{{Name: "A"}}
			})
			s.live()
			s.fails["default"] = forbidden
			change(&s.set.Spec.Template.Spec)
			if got := s.live(); s.err != nil || len(got) == 0 || got[0] != "create revision 3 -2" || s.set.Status.CurrentRevision != s.set.Status.UpdateRevision {
				t.Errorf("%q, %v, told %q", got, s.err, s.told)
			}
		})
	}
	t.Run("RV-3c what may be a new default restarts nothing", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.set.Spec.Template.Spec.SchedulerName = "default-scheduler"
		s.fails["default"] = forbidden
		if got := s.sync(); got != "" || !errors.Is(s.err, forbidden) || len(s.told) != 1 || !strings.HasPrefix(s.told[0], "Warning TemplateNotTried no pod is replaced: ") {
			t.Errorf("%q %v, told %q", got, s.err, s.told)
		}
		if s.sync(); len(s.told) > 0 {
			t.Errorf("told again %q", s.told)
		}
		s.set.Generation++
		if s.sync(); len(s.told) != 1 {
			t.Errorf("told %q of another template", s.told)
		}
	})
}

func TestRevisionNamesThatAreTaken(t *testing.T) {
	clash := func(s *fixture, change func(*appsv1.ControllerRevision)) {
		reimaged(s, "web:2")
		r, _ := s.set.newRevision(1, 0)
		change(r)
		r.Labels = nil // so that it is not among those of the set
		s.store(r)
	}
	for _, c := range []struct {
		rule   string
		change func(*appsv1.ControllerRevision)
		count  int32
	}{
		{"RV-4 other data", func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{}`) }, 1},
		{"RV-4 the same data", func(*appsv1.ControllerRevision) {}, 0},
		{"RV-5 the same data, of another", func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "another" }, 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0 1 2")
			clash(s, c.change)
			s.sync()
			got := int32(0)
			if s.set.Status.CollisionCount != nil {
				got = *s.set.Status.CollisionCount
			}
			if s.err != nil || got != c.count {
				t.Errorf("%d collisions, expected %d (%v)", got, c.count, s.err)
			}
			if again := s.sync(); strings.Contains(again, "revision") {
				t.Errorf("and again %q", again)
			}
		})
	}
}

func TestHistoryIsKeptToItsLimit(t *testing.T) {
	history := func(n int32) func(*Set) { return func(s *Set) { s.Spec.RevisionHistoryLimit = &n } }
	for _, c := range []struct {
		rule  string
		limit func(*Set)
		keeps int
	}{
		{"RV-7 two besides the live one", history(2), 3},
		{"RV-7 none", history(0), 1},
		{"RV-7 all", history(-1), 15},
		{"RV-7 ten", func(*Set) {}, 11},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0", replicas(1), c.limit)
			for k := 2; k <= 15; k++ {
				reimaged(s, fmt.Sprintf("web:%d", k))
				s.live()
				s.sync() // the status that ended the update triggers a reconcile
			}
			if len(s.revisions) != c.keeps || s.revisions[s.set.Status.UpdateRevision] == nil {
				t.Errorf("%d revisions, expected %d", len(s.revisions), c.keeps)
			}
		})
	}
	t.Run("RV-7 what a pod is of stays", func(t *testing.T) {
		s := play(t, "0o", replicas(1), history(0), partition(1))
		reimaged(s, "web:3")
		s.live()
		if s.revisions[revisionOf(s.pods["web-0"])] == nil || len(s.revisions) != 2 {
			t.Errorf("%d revisions", len(s.revisions))
		}
	})
	t.Run("RV-7 also if it is neither the current nor the latest", func(t *testing.T) {
		s := play(t, "0o 1o 2", history(0))
		middle := revisionOf(s.pods["web-2"])
		reimaged(s, "web:3")
		if s.expect("create revision 3 -2"); s.revisions[middle] == nil {
			t.Error("it is deleted with a pod of it there")
		}
	})
	t.Run("RV-7 the current one stays until the update is complete", func(t *testing.T) {
		s := play(t, "0o", replicas(1), history(0))
		current := s.set.Status.CurrentRevision
		s.expect("-0")
		delete(s.pods, "web-0")
		s.expect("+0")
		if s.expect(""); s.revisions[current] == nil {
			t.Error("it is deleted with no way back")
		}
		s.is("web-0", "")
		s.expect("") // the update is complete
		if s.expect("delete revision 1"); s.revisions[current] != nil {
			t.Error("it stays")
		}
	})
}

// CL-5: the set is read again before an orphan is adopted, since the one in the cache may be gone.
func TestNoPodIsAdoptedForASetThatIsGone(t *testing.T) {
	t.Run("CL-5 the set is read again before", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.pods["web-1"].OwnerReferences = nil
		s.fails["fresh"] = errors.New("no answer")
		if got := s.sync(); got != "" || s.err == nil {
			t.Errorf("got %q, %v", got, s.err)
		}
	})
	for rule, change := range map[string]func(*Set){
		"CL-5 not for a set that was recreated": func(s *Set) { s.UID = "recreated" },
		"CL-5 not for a set that was deleted":   deleting,
	} {
		t.Run(rule, func(t *testing.T) {
			s := play(t, "0 1 2")
			s.pods["web-1"].OwnerReferences = nil
			s.stored = &Set{ObjectMeta: s.set.ObjectMeta}
			change(s.stored)
			if got := s.sync(); got != "" || s.err == nil {
				t.Errorf("got %q, %v", got, s.err)
			}
		})
	}
}

func TestPodsAreClaimed(t *testing.T) {
	owned := func(uid types.UID) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "X", Name: "x", UID: uid, Controller: &yes}}
	}
	for _, c := range []struct {
		rule   string
		change func(*fixture, *corev1.Pod)
		set    []func(*Set)
		want   string
	}{
		{"CL-2 of another controller", func(_ *fixture, p *corev1.Pod) { p.OwnerReferences = owned("other") }, nil, ""},
		{"CL-3 ours", func(*fixture, *corev1.Pod) {}, nil, ""},
		{"CL-4 no longer selected", func(_ *fixture, p *corev1.Pod) { p.Labels["app"] = "else" }, nil, "release 1"},
		{"CL-4 not while the set is being deleted", func(_ *fixture, p *corev1.Pod) { p.Labels["app"] = "else" }, is(deleting), ""},
		{"CL-5 an orphan", func(_ *fixture, p *corev1.Pod) { p.OwnerReferences = nil }, nil, "adopt 1"},
		{"CL-5 an orphan that is going", func(s *fixture, p *corev1.Pod) { p.OwnerReferences = nil; s.is(p.Name, "~") }, nil, ""},
		{"CL-5 an orphan of others", func(_ *fixture, p *corev1.Pod) { p.OwnerReferences = nil; p.Labels["app"] = "else" }, nil, ""},
		{"CL-8 not while the set is being deleted", func(_ *fixture, p *corev1.Pod) { p.OwnerReferences = nil }, is(deleting), ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0 1 2", c.set...)
			c.change(s, s.pods["web-1"])
			got := s.sync()
			if got = strings.TrimSpace(strings.ReplaceAll(got, "+1", "")); got != c.want {
				t.Errorf("got %q, expected %q (%v)", got, c.want, s.err)
			}
		})
	}
	t.Run("CL-6 an orphan outside the range is left alone", func(t *testing.T) {
		s := play(t, "0 1 2 5")
		s.pods["web-5"].OwnerReferences = nil
		s.expect("")
		if len(s.told) != 1 || !strings.HasPrefix(s.told[0], "Warning OrphanOutOfRange pod web-5 ") {
			t.Errorf("told %q", s.told)
		}
		if s.expect(""); len(s.told) > 0 {
			t.Errorf("told again %q", s.told)
		}
		s.set.AdoptOutside = true
		s.expect("adopt 5 -5")
	})
	t.Run("CL-7 revisions", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.revisions[s.set.Status.CurrentRevision].OwnerReferences = nil
		s.expect("adopt revision 1")
		s.expect("")
	})
	t.Run("CL-7 those of another set with the same selector", func(t *testing.T) {
		s := play(t, "0 1 2")
		other := *s.set
		other.Name = "web-a"
		r, err := other.newRevision(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.OwnerReferences = nil
		s.store(r)
		s.expect("")
		s.set.AdoptOutside = true // the built-in controller takes it for the newest of its own, and replaces the pods
		s.expect("adopt revision 1 -2")
	})
	t.Run("CL-8 a set that is being deleted does nothing", func(t *testing.T) {
		s := play(t, "0 2x 5", deleting)
		s.expect("")
		if s.set.Status.Replicas != 3 {
			t.Errorf("%+v", s.set.Status)
		}
	})
	t.Run("CL-10 a name that is taken", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.pods["web-2"].OwnerReferences = owned("other")
		if s.sync(); s.err == nil || !slices.Equal(s.told, []string{"Warning PodNameConflict pod web-2 exists and is controlled by X x: it is left unchanged"}) {
			t.Errorf("%v, told %q", s.err, s.told)
		}
	})
	t.Run("CL-10 by a pod of ours that is not seen yet", func(t *testing.T) {
		s := play(t, "0 1 2")
		s.seen = func(w *World) { w.Pods = w.Pods[:2] }
		if s.sync(); !errors.Is(s.err, ErrBehind) || len(s.told) > 0 {
			t.Errorf("%v, told %q", s.err, s.told)
		}
	})
	t.Run("CL-12 a selector that cannot be read", func(t *testing.T) {
		s := play(t, "0 1 2", func(s *Set) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Nonsense"}}
		})
		if got := s.sync(); got != "" || !errors.Is(s.err, ErrInvalid) {
			t.Errorf("got %q, %v", got, s.err)
		}
	})
}
