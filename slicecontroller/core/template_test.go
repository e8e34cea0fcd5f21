package core

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func faulty(s *Set) {
	s.Conditioned, s.Fault = true, &Fault{Reason: "InvalidTemplate", Message: "spec.containers[0].image: Required value"}
}

// A set whose template cannot be used keeps its pods at its last template: lost pods are recreated, pods are
// created and deleted with the range, and none is replaced.
func TestATemplateThatCannotBeUsedStopsNoHealing(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		want       string
	}{
		{"a pod that is missing", "0 2", nil, "+1"},
		{"a pod that has failed", "0 1x 2", nil, "-1"},
		{"the range grows", "0 1 2", is(replicas(4)), "+3"},
		{"the range shrinks", "0 1 2", is(replicas(2)), "-2"},
		{"nobody is replaced", "0o 1o 2", nil, ""},
		{"nobody is replaced by force", "0o 1o 2", is(enforced), ""},
		{"in no order", "0o 2", is(parallel), "+1"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, append(c.set, faulty)...)
			s.expect(c.want)
			if got, want := s.condition(Progressing), "True InvalidTemplate: spec.containers[0].image: Required value"; got != want {
				t.Errorf("got %q, expected %q", got, want)
			}
			if got, want := s.condition(Stalled), "True InvalidTemplate: spec.containers[0].image: Required value"; got != want {
				t.Errorf("got %q, expected %q", got, want)
			}
			if n := s.set.Status.UpdatedReplicas; n != 0 {
				t.Errorf("%d pods count as of a template that none can have", n)
			}
			if len(s.told) == 0 || s.told[len(s.told)-1] != "Warning InvalidTemplate spec.containers[0].image: Required value" {
				t.Errorf("it told %q", s.told)
			}
			if s.sync(); len(s.told) > 0 && s.told[len(s.told)-1] == "Warning InvalidTemplate spec.containers[0].image: Required value" {
				t.Error("it told that twice")
			}
			s.set.Fault = nil
			if s.sync(); s.condition(Stalled) != "" || s.set.Status.UpdatedReplicas == 0 && c.pods != "0o 2" {
				t.Errorf("once it is mended: %q, %d updated", s.condition(Stalled), s.set.Status.UpdatedReplicas)
			}
		})
	}
}

// A set that never had a usable template gets no pods, and has the reason in its conditions.
func TestWithoutAnyTemplateNothingIsMade(t *testing.T) {
	s := play(t, "", faulty)
	s.revisions, s.set.Generation = map[string]*appsv1.ControllerRevision{}, 4
	s.expect("")
	if got, want := s.condition(Stalled), "True InvalidTemplate: spec.containers[0].image: Required value"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	if got := s.set.Status.ObservedGeneration; got != 4 {
		t.Errorf("what it says is about generation %d", got)
	}
	s.fails["status"] = errors.New("conflict")
	s.set.Status.Told = nil
	if s.sync(); s.err == nil {
		t.Error("a status that could not be written is not written again")
	}
}

// A revision names the template that it was filled in from, and a later process reads the result from it.
func TestARevisionKnowsWhatItWasFilledInFrom(t *testing.T) {
	asked := func(words string) func(*Set) { return func(s *Set) { s.Asked = words } }
	s := play(t, "0 1 2", asked("one"))
	for name := range s.revisions { // as an earlier release made it
		s.revisions[name].Annotations = nil
	}
	for _, refused := range []error{errors.New("a policy"), apierrors.NewConflict(schema.GroupResource{}, "web", nil)} {
		s.fails["update revision 1"] = refused
		if did := s.sync(); did != "update revision 1" || (s.err == nil) != apierrors.IsConflict(refused) || s.set.Status.UpdatedReplicas != 3 {
			t.Errorf("%v: %q, %d updated (%v)", refused, did, s.set.Status.UpdatedReplicas, s.err)
		}
	}
	delete(s.fails, "update revision 1")
	s.expect("update revision 1")
	s.expect("")
	world := func() World { return World{Set: s.set, Revisions: sortedByName(s.revisions)} }
	if got, found := world().FilledIn("one"); !found || got.Spec.Containers[0].Image != "web:1" {
		t.Errorf("%v %+v", found, got)
	}
	s.set.Spec.Template.Spec.Containers[0].Image = "web:2"
	asked("two")(s.set)
	s.expect("create revision 2 -2")
	if got, found := world().FilledIn("two"); !found || got.Spec.Containers[0].Image != "web:2" {
		t.Errorf("%v %+v", found, got)
	}
	if got, found := world().LastGood(); !found || got.Spec.Containers[0].Image != "web:2" {
		t.Errorf("%v %+v", found, got)
	}
	if _, found := world().FilledIn("three"); found {
		t.Error("a template that was never seen is known")
	}
	s.set.UID = "namesake"
	if _, found := world().FilledIn("two"); found {
		t.Error("a namesake's revision is believed")
	}
}

// While the revision of a new template cannot be found or created, lost pods are recreated from the one
// before, and pods are created and deleted with the range. The pass has failed, and is retried.
func TestARevisionThatCannotBeMadeStopsNoHealing(t *testing.T) {
	for _, refused := range []string{"default", "create revision 2"} {
		for _, c := range []struct {
			pods string
			n    int32
			want string
		}{{"0 2", 3, "+1"}, {"0 1 2", 4, "+3"}, {"0 1 2", 2, "-2"}, {"0 1 2", 3, ""}} {
			s := play(t, c.pods, replicas(c.n))
			s.set.Spec.Template.Spec.Containers[0].Image = "web:2"
			s.fails[refused] = errors.New("exceeded quota")
			did := strings.TrimSpace(strings.TrimPrefix(s.sync(), "create revision 2")) // the failed attempt
			if did != c.want || !errors.Is(s.err, s.fails[refused]) || s.set.Status.UpdatedReplicas != 0 {
				t.Errorf("%s, %s of %d: got %q, expected %q (%v); %d updated", refused, c.pods, c.n, did, c.want, s.err, s.set.Status.UpdatedReplicas)
			}
			delete(s.fails, refused)
			s.live()
			if s.err != nil || s.set.Status.UpdatedReplicas != c.n {
				t.Errorf("%s, %s of %d: once it can be made: %d updated (%v)", refused, c.pods, c.n, s.set.Status.UpdatedReplicas, s.err)
			}
		}
	}
}

// The owner references of a set's dependents have the version of the kind that the process has, whatever
// created them.
func TestReferencesAreOfThisVersion(t *testing.T) {
	s := play(t, "0 1 2", claims("data"), retains("RD"))
	before := s.set.owner().APIVersion
	s.set.Kind.Version = "v1beta1"
	s.live()
	all := map[string]Object{}
	for name, o := range s.pods {
		all[name] = o
	}
	for name, o := range s.claims {
		all[name] = o
	}
	for name, o := range s.revisions {
		all[name] = o
	}
	for name, o := range all {
		if refs := o.GetOwnerReferences(); s.err != nil || len(refs) != 1 || refs[0].APIVersion == before {
			t.Errorf("%s refers by %+v (%v)", name, refs, s.err)
		}
	}
	s.expect("")
}

// While no pod is replaced, since the template cannot be used, a pod that has failed has no turn: it is deleted as
// always, and recreated.
func TestAPodThatHasFailedIsRecreatedBesideATemplateThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct{ pods, want string }{
		"in the middle of an update": {"0o 1ox 2", "-1"},
		"before its first pod":       {"0o 1o 2os", "-2"},
		"one that is terminating":    {"0o 1ox~ 2", ""},
	} {
		for how, order := range map[string]func(*Set){"in order": func(*Set) {}, "Parallel": parallel} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := play(t, c.pods, enforced, order)
				s.set.Fault = &Fault{Reason: "InvalidTemplate", Message: "no pod is replaced"}
				s.expect(c.want)
			})
		}
	}
}
