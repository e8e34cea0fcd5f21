package rollout

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// cast returns the pods that words such as "0 1o 2!" describe: o is of the old revision, ! not ready, ~
// terminating.
func cast(words string) (out []client.Object) {
	for _, word := range strings.Fields(words) {
		ordinal := strings.TrimRight(word, "o!~")
		revision := "web-b"
		if strings.Contains(word, "o") {
			revision = "web-a"
		}
		pod := rolledPod("web-"+ordinal, revision, !strings.Contains(word, "!"))
		if strings.Contains(word, "~") {
			pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"a.b/c"}
		}
		out = append(out, pod)
	}
	return out
}

func behind(available int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Status.AvailableReplicas = available }
}

func from(k int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: k} }
}

// without leaves out an ordinal of a slice.
func without(ordinal string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.More, `{"reserveOrdinals":[`+ordinal+`]}`)
	}
}

func TestAnUpdateSaysWhatItWaitsForPodByPod(t *testing.T) {
	const done, native, slice = "done", "StatefulSet shop/web: ", "StatefulSetSlice shop/web: "
	for _, c := range []struct {
		name, pods string
		slice      bool
		set        []func(*appsv1.StatefulSet)
		want       []string // done, or what is waited for
	}{
		{"all is done", "0 1 2", false, nil, []string{done, "StatefulSet shop/web is rolled out: 3 of 3 pods are of revision web-b, and all are available"}},
		{"of a slice too", "0 1 2", true, nil, []string{done, "StatefulSetSlice shop/web is rolled out: 3 of 3 pods are of revision web-b, and all are available"}},
		{"of a slice that leaves out an ordinal", "0 2 3", true, []func(*appsv1.StatefulSet){without("1")}, []string{done, "StatefulSetSlice shop/web is rolled out: 3 of 3 pods are of revision web-b, and all are available"}},
		{"one that is left out and still there", "0 1 2 3", true, []func(*appsv1.StatefulSet){without("1")}, []string{
			slice + "3 of 3 pods are of revision web-b, 3 of 3 are available", "pod web-1 is outside the range and still there",
		}},
		{"pods that wait for their turn come last", "0o 1! 2o", false, []func(*appsv1.StatefulSet){behind(2)}, []string{
			native + "1 of 3 pods are of revision web-b, 2 of 3 are available", "pod web-1 is Running and not Ready",
			"pod web-2 is of revision web-a and will be replaced", "pod web-0 is of revision web-a and will be replaced",
		}},
		{"one that is broken and to be replaced", "0o! 1 2", false, []func(*appsv1.StatefulSet){behind(2)}, []string{
			native + "2 of 3 pods are of revision web-b, 2 of 3 are available", "pod web-0 is Running and not Ready; it is of revision web-a and will be replaced",
		}},
		{"one that is gone, one that goes, one outside", "0~ 2 3", true, []func(*appsv1.StatefulSet){behind(1)}, []string{
			slice + "2 of 3 pods are of revision web-b, 1 of 3 are available", "pod web-0 is terminating", "pod web-1 will be created", "pod web-3 is outside the range and still there",
		}},
		{"minReadySeconds", "0 1 2", false, []func(*appsv1.StatefulSet){behind(2)}, []string{native + "3 of 3 pods are of revision web-b, 2 of 3 are available"}},
		{"a partition of a StatefulSet is an offset", "3o 4 5", false, []func(*appsv1.StatefulSet){from(3), parted(1)}, []string{
			done, "StatefulSet shop/web is rolled out: 2 of 3 pods are of revision web-b, and all are available",
		}},
		{"that of a slice an ordinal", "3o 4 5", true, []func(*appsv1.StatefulSet){from(3), parted(1)}, []string{
			slice + "2 of 3 pods are of revision web-b, 3 of 3 are available", "pod web-3 is of revision web-a and will be replaced",
		}},
		{"the controller has not looked", "0o 1o 2o", false, []func(*appsv1.StatefulSet){func(s *appsv1.StatefulSet) { s.Generation++ }}, []string{native + "its controller has not seen generation 3 yet"}},
		{"a StatefulSet that is paused", "0o 1o 2", false, []func(*appsv1.StatefulSet){parted(int32(protectsAll)), annotated(pausedFrom, "1")}, []string{
			native + "1 of 3 pods are of revision web-b, 3 of 3 are available; it is paused, and replaces no pod until it is resumed: stsmigrate rollout resume web -n shop --context home",
			"pod web-1 is of revision web-a and will be replaced",
		}},
		{"OnDelete without an old pod", "0 1 2", false, []func(*appsv1.StatefulSet){strategy("OnDelete")}, []string{done, "StatefulSet shop/web is rolled out: 3 of 3 pods are of revision web-b, and all are available"}},
		{"pods of others do not count", "0 1 2", false, []func(*appsv1.StatefulSet){func(s *appsv1.StatefulSet) { s.UID = "another" }}, []string{
			native + "0 of 3 pods are of revision web-b, 3 of 3 are available", "pod web-0 will be created", "pod web-1 will be created", "pod web-2 will be created",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := rolls(c.slice, rolledSet(c.set...), cast(c.pods)...)
			r.Again = " -n shop --context home"
			got, err := r.Look(t.Context())
			said := got.Waits
			if got.Done {
				said = []string{done, got.Summary}
			}
			if err != nil || strings.Join(said, "\n") != strings.Join(c.want, "\n") || got.Stuck != "" {
				t.Errorf("%v, stuck %q, got\n%s\nexpected\n%s", err, got.Stuck, strings.Join(said, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestAnUpdateThatDoesNotGoOnByItselfSaysWhy(t *testing.T) {
	told := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	stalled := func(reason string, is metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: "Stalled", Status: is, Reason: reason, Message: "no progress for 1m0s"}
	}
	first := stalled("TemplateNotTried", metav1.ConditionTrue)
	first.ObservedGeneration = 1
	for _, c := range []struct {
		name       string
		slice      bool
		set        []func(*appsv1.StatefulSet)
		conditions []metav1.Condition
		want       string
	}{
		{"it has no revision yet", true, []func(*appsv1.StatefulSet){func(s *appsv1.StatefulSet) { s.Generation, s.Status.UpdateRevision = 1, "" }}, told(first), "StatefulSetSlice shop/web: no progress for 1m0s"},
		{"the deadline has passed", true, nil, told(stalled("ProgressDeadlineExceeded", metav1.ConditionTrue)), "StatefulSetSlice shop/web: no progress for 1m0s"},
		{"it has halted", true, nil, told(stalled("Waiting", metav1.ConditionTrue)), "StatefulSetSlice shop/web: no progress for 1m0s"},
		{"what the API server refuses", true, nil, told(stalled("Failing", metav1.ConditionTrue)), "StatefulSetSlice shop/web: no progress for 1m0s"},
		{"it was stalled", true, nil, told(stalled("Waiting", metav1.ConditionFalse)), ""},
		{"the controller has not seen the new template", true, []func(*appsv1.StatefulSet){func(s *appsv1.StatefulSet) { s.Generation++ }}, told(stalled("ProgressDeadlineExceeded", metav1.ConditionTrue)), ""},
		{"OnDelete", false, []func(*appsv1.StatefulSet){strategy("OnDelete")}, nil, "StatefulSet shop/web has the update strategy OnDelete, and replaces no pod by itself: delete those that are not of revision web-b: web-0 web-1"},
		{"it is deleted", false, []func(*appsv1.StatefulSet){func(s *appsv1.StatefulSet) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"a.b/c"}
		}}, nil, "StatefulSet shop/web is being deleted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, on := rolls(c.slice, rolledSet(c.set...), cast("0o 1o 2!")...)
			if c.conditions != nil {
				var s v1alpha1.StatefulSetSlice
				err := on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &s)
				s.Status.Conditions = c.conditions
				if err == nil {
					err = on.Update(t.Context(), &s)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got, err := r.Look(t.Context()); err != nil || got.Stuck != c.want || got.Done {
				t.Errorf("%v: %+v, expected %q", err, got, c.want)
			}
		})
	}
	r, _ := rolls(true, rolledSet())
	r.Set.Name = "none"
	if _, err := r.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "StatefulSetSlice shop/none does not exist") {
		t.Errorf("%v", err)
	}
}

// What keeps a slice from going on by no fault of its pods is said beside them.
func TestAnUpdateNamesTheBudgetThatItWaitsFor(t *testing.T) {
	r, on := rolls(true, rolledSet(behind(3)), cast("0o 1 2")...)
	var s v1alpha1.StatefulSetSlice
	if err := on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &s); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		told metav1.Condition
		want bool
	}{
		{metav1.Condition{Type: "EvictionRefused", Status: metav1.ConditionTrue, Message: "the budget b refuses"}, true},
		{metav1.Condition{Type: "EvictionRefused", Status: metav1.ConditionFalse, Message: "the budget b refuses"}, false},
		{metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Failing", Message: "a webhook does not answer"}, true},
		{metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Waiting", Message: "pod web-0 will be replaced"}, false},
	} {
		s.Status.Conditions = []metav1.Condition{c.told}
		if err := on.Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		got, err := r.Look(t.Context())
		if err != nil || got.Stuck != "" || len(got.Waits) < 2 || (got.Waits[1] == c.told.Message) != c.want {
			t.Errorf("%v: %+v, said %t expected of %q", err, got, c.want, c.told.Message)
		}
	}
}

// During a move the status covers the part of the set on this side.
func TestAnUpdateSaysThatItsSetIsBeingMoved(t *testing.T) {
	r, _ := rolls(false, rolledSet(annotated(plans.StampAnnotation, "tidy/1/2")), cast("0 1 2")...)
	got, err := r.Look(t.Context())
	if want := "StatefulSet shop/web is being moved by plan tidy: this is the status of the part on this side, [0..2]"; err != nil || !got.Done || len(got.Notes) != 1 || got.Notes[0] != want {
		t.Errorf("%v: %+v, expected %q", err, got, want)
	}
}

// A range that was mistyped does not make a name for each of its ordinals.
func TestAMistypedRangeIsNotNamed(t *testing.T) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2000000000))}}
	r := &rolling{set: set, pods: map[string]*corev1.Pod{"web-0": nil, "web-1": nil}, left: []int32{1}}
	if got := r.ordinals(); len(got) != 2+maxAbsent || got[1] != 2 {
		t.Errorf("%d ordinals: %v", len(got), got[:2])
	}
}
