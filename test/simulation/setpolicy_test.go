package simulation

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// mistakes are changes of a set that are the plan's alone while the set has its mark, and a part of the reason.
func mistakes() map[string]struct {
	do  func(*appsv1.StatefulSet)
	why string
} {
	note := func(key, value string) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
	}
	return map[string]struct {
		do  func(*appsv1.StatefulSet)
		why string
	}{
		"scale up": {func(s *appsv1.StatefulSet) { *s.Spec.Replicas += 2 }, "which alone changes its replicas and ordinals"},
		"move the range": {func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: plans.SliceOf(s).Start + 1}
		}, "which alone changes its replicas and ordinals"},
		"take the marks off": {func(s *appsv1.StatefulSet) { plans.Unmark(s) }, "to which its annotations stsmigrate.dev/* belong"},
		"take all notes off": {func(s *appsv1.StatefulSet) { s.Annotations = nil }, "to which its annotations stsmigrate.dev/* belong"},
		"change the mark":    {note(plans.StampAnnotation, "mine/9/9"), "to which its annotations stsmigrate.dev/* belong"},
		"change what was":    {note(plans.BeforeAnnotation, "{}"), "to which its annotations stsmigrate.dev/* belong"},
		"unpin it by a note": {note(plans.PinnedAnnotation, "7"), "to which its annotations stsmigrate.dev/* belong"},
	}
}

// harmless are changes of a set that stay everybody's.
func harmless() map[string]func(*appsv1.StatefulSet) {
	return map[string]func(*appsv1.StatefulSet){
		"nothing":        func(*appsv1.StatefulSet) {},
		"a new template": func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "new" },
		"a restart": func(s *appsv1.StatefulSet) {
			metav1.SetMetaDataAnnotation(&s.Spec.Template.ObjectMeta, "restarted", "now")
		},
		"a strategy":       func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType },
		"a label":          func(s *appsv1.StatefulSet) { metav1.SetMetaDataLabel(&s.ObjectMeta, "team", "shop") },
		"a note of others": func(s *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/note", "x") },
		"a finalizer":      func(s *appsv1.StatefulSet) { s.Finalizers = append(s.Finalizers, "example.com/keep") },
		"a status":         func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas++ },
		"its start spelled": func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: plans.SliceOf(s).Start}
		},
	}
}

// updated returns what the policies say to an update of a set by a user, of this resource and subresource.
func updated(of, who string, before *appsv1.StatefulSet, change func(*appsv1.StatefulSet)) string {
	after := before.DeepCopy()
	change(after)
	return refusal(of, admissionv1.Update, before, asks(who, admissionv1.Update, before, document(before), document(after)))
}

// made returns what the policies say to a new set.
func made(of, who string, set *appsv1.StatefulSet) string {
	return refusal(of, admissionv1.Create, set, asks(who, admissionv1.Create, set, nil, document(set)))
}

// scaled returns what the policies say to the new number of replicas of a set, of which the API server has this copy in
// memory.
func scaled(of, who string, set, cached *appsv1.StatefulSet, n int32) string {
	before := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion}}
	before.Spec.Replicas = *set.Spec.Replicas
	after := before.DeepCopy()
	after.Spec.Replicas = n
	input := asks(who, admissionv1.Update, set, document(before), document(after))
	input["params"] = document(cached)
	return refusal(of+"/scale", admissionv1.Update, set, input)
}

// From the first write of a plan to the last one, at every moment, nobody but those who carry plans out can give an
// ordinal to two sets, or take off what the plan needs to go on. Everything else of a set stays its user's.
func TestColleaguesScaleNoSetOfAPlan(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, j := range journeys() {
			t.Run(string(mode)+" "+j.name(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(threeOrdinals(mode))
				marked, seen := map[plans.Side]bool{}, map[string]bool{}
				look := func(engine.Progress) bool {
					for side, s := range w.on {
						set, there := get[*appsv1.StatefulSet](s, w.namespace(side), setName)
						if !there || set.Annotations[plans.StampAnnotation] == "" || seen[string(side)+set.ResourceVersion] {
							continue
						}
						marked[side], seen[string(side)+set.ResourceVersion] = true, true
						guarded(t, set)
					}
					return t.Failed()
				}
				for _, direction := range j {
					if got, err := w.process().run(t.Context(), direction, look); err != nil || got.kind != engine.Finished {
						t.Fatalf("%s ended with %q: %v", direction, got, err)
					}
				}
				if len(marked) != 2 || len(seen) < 20 {
					t.Errorf("marked sets were seen on %v, in %d versions", slices.Collect(maps.Keys(marked)), len(seen))
				}
				side := plans.Destination
				if j[len(j)-1] == plans.Abort {
					side = plans.Source
				}
				set, _ := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName)
				for _, why := range []string{updated("statefulsets", "eve", set, mistakes()["scale up"].do), scaled("statefulsets", "eve", set, set, 7)} {
					if why != "" {
						t.Errorf("after the end: %s", why)
					}
				}
			})
		}
	}
}

// guarded requires that the policies keep a marked set from the mistakes of a user, and hinder nobody else.
func guarded(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	plan, _, _ := strings.Cut(set.Annotations[plans.StampAnnotation], "/")
	refused := func(what, why, want string) {
		t.Helper()
		if !strings.Contains(why, "is being moved by plan "+plan) || !strings.Contains(why, want) || !strings.Contains(why, "eve is not among them") {
			t.Errorf("%s: %q, expected it to be refused with %q", what, why, want)
		}
	}
	for _, of := range []string{"statefulsets", "statefulsetslices"} {
		for name, e := range mistakes() {
			refused(of+", "+name, updated(of, "eve", set, e.do), e.why)
			if why := updated(of, account, set, e.do); why != "" {
				t.Errorf("%s, %s, by the orchestrator: %s", of, name, why)
			}
		}
		for name, do := range harmless() {
			for _, sub := range []string{"", "/status"} {
				if why := updated(of+sub, "eve", set, do); why != "" {
					t.Errorf("%s%s, %s: %s", of, sub, name, why)
				}
			}
		}
		refused(of+"/status", updated(of+"/status", "eve", set, func(s *appsv1.StatefulSet) { plans.Unmark(s) }), "belong")
		refused(of+"/scale", scaled(of, "eve", set, set, *set.Spec.Replicas+2), "which alone changes its replicas")
		if why := scaled(of, account, set, set, *set.Spec.Replicas+2); why != "" {
			t.Errorf("%s/scale by the orchestrator: %s", of, why)
		}
	}
}

// The policies know no set but one that is marked, and only its last version tells whether it is.
func TestOtherSetsAreScaledAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(threeOrdinals(plans.Rebind))
	set, _ := get[*appsv1.StatefulSet](w.on[plans.Source], blue, setName)
	mark := func(s *appsv1.StatefulSet) *appsv1.StatefulSet {
		s = s.DeepCopy()
		plans.Stamp{Plan: "web", Epoch: 1, Seq: 1}.Put(s)
		return s
	}
	marked, other, older := mark(set), mark(set), mark(set)
	other.Name = "mail"
	older.ResourceVersion = "1"
	for _, of := range []string{"statefulsets", "statefulsetslices"} {
		for name, why := range map[string]string{
			"an update of a set without a mark":      updated(of, "eve", set, mistakes()["scale up"].do),
			"a scale of it":                          scaled(of, "eve", set, set, 7),
			"the mark is of another set":             scaled(of, "eve", set, other, 7),
			"the mark is of a former version":        scaled(of, "eve", set, older, 7),
			"a scale of a marked set to what it has": scaled(of, "eve", marked, marked, *marked.Spec.Replicas),
			"the deletion of a marked set":           refusal(of, admissionv1.Delete, marked, asks("eve", admissionv1.Delete, marked, document(marked), nil)),
			"the orchestrator makes a marked set":    made(of, account, marked),
			"a set without a mark is made":           made(of, "eve", set),
			"the orchestrator marks a set":           updated(of, account, set, func(s *appsv1.StatefulSet) { s.Annotations = marked.Annotations }),
			"a note that begins alike, on no plan's": updated(of, "eve", set, func(s *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, plans.PausedAnnotation, "0") }),
			"a note of the slice controller, on a set": updated(of, "eve", marked, func(s *appsv1.StatefulSet) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, "apps.stsmigrate.dev/retain-claims", "")
			}),
		} {
			if why != "" {
				t.Errorf("%s, %s: %s", of, name, why)
			}
		}
		for name, why := range map[string]string{
			"eve marks a set":            updated(of, "eve", set, func(s *appsv1.StatefulSet) { s.Annotations = marked.Annotations }),
			"eve copies a set with mark": made(of, "eve", marked),
		} {
			if !strings.Contains(why, "only those who carry plans out may mark it") {
				t.Errorf("%s, %s: %q", of, name, why)
			}
		}
		why := scaled(of, "eve", marked, marked, 0)
		if !strings.Contains(why, "is being moved by plan web") {
			t.Errorf("%s: eve scales to nothing: %q", of, why)
		}
	}
}

// A slice can leave ordinals out: that is a part of its range.
func TestOrdinalsThatASliceLeavesOutAreThePlans(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: setName}}
	plans.Stamp{Plan: "web", Epoch: 1, Seq: 1}.Put(set)
	ask := func(left ...any) string {
		before, _ := document(client.Object(set)).(map[string]any)
		after, _ := document(client.Object(set)).(map[string]any)
		after["spec"].(map[string]any)["reserveOrdinals"] = left //nolint:forcetypeassert // a set has a spec
		return refusal("statefulsetslices", admissionv1.Update, set, asks("eve", admissionv1.Update, set, before, after))
	}
	if why := ask(int64(1)); !strings.Contains(why, "which alone changes its replicas and ordinals") {
		t.Errorf("an ordinal is left out: %q", why)
	}
	if why := ask(); why != "" {
		t.Errorf("none is left out: %s", why)
	}
}

// A user who may not carry plans out is refused at the first write, and not with an ordinal on neither side. The plan
// has a way out for those who may.
func TestWhoCarriesNoPlansOutBeginsNone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		r := w.process()
		r.user = "eve"
		got, err := r.run(t.Context(), plans.Move, nil)
		if err == nil || !strings.Contains(err.Error(), "only those who carry plans out may mark it") {
			t.Errorf("%s: it ended with %q: %v", mode, got, err)
		}
		for side, s := range w.on {
			if set, there := get[*appsv1.StatefulSet](s, w.namespace(side), setName); there && set.Annotations[plans.StampAnnotation] != "" {
				t.Errorf("%s: the set of the %s is marked", mode, side)
			}
		}
		walk(t, w, plans.Abort, nil) // by one who may
		cleanEnd(t, w, w.start)
	}
}
