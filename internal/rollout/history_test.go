package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// Undo restores a template as its revision has it, with the fields of a newer Kubernetes.
func TestAnUndoBringsBackFieldsThatAreNotKnown(t *testing.T) {
	yes := true
	for kind, ref := range map[string]plans.Ref{
		"StatefulSet": {Namespace: "shop", Name: "web"}, "StatefulSetSlice": {Namespace: "shop", Name: "web", Kind: plans.SliceKind},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
		set.Spec.Template.Labels = map[string]string{"app": "web", "later": "yes"}
		var there client.Object = set
		if ref.IsSlice() {
			there = v1alpha1.FromNative(set)
		}
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "web", UID: "u", Controller: &yes}}},
			Revision:   1,
			Data: runtime.RawExtension{Raw: []byte(
				`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","futureContainer":1}],"futurePod":"precious"}}}}`)},
		}
		var sent string
		on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(there, revision).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
				raw, err := patch.Data(o)
				sent = o.GetObjectKind().GroupVersionKind().Kind + string(raw)
				return err
			},
		}).Build()
		h, err := ReadHistory(t.Context(), on, ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Undo(t.Context(), h.Revisions[0], false); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{kind + "{", `"futurePod":"precious"`, `"futureContainer":1`, `"later":null`, `"resourceVersion":"999"`} {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: %s was sent, expected %s in it", kind, sent, want)
			}
		}
		if strings.Contains(sent, "$patch") {
			t.Errorf("%s: a directive was sent: %s", kind, sent)
		}
	}
}

// A newer status does not prevent an undo. A changed spec, a recreated set and the stamp of a plan do.
func TestAnUndoIsMadeAnewOverANewerStatus(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		meanwhile func(*appsv1.StatefulSet)
		want      string // the refusal; "" for none
	}{
		"a newer status": {func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas++ }, ""},
		"another spec":   {func(s *appsv1.StatefulSet) { s.Generation++ }, "was changed while this ran"},
		"recreated,":     {func(s *appsv1.StatefulSet) { s.UID = "another" }, "was changed while this ran"},
		"a move begins": {func(s *appsv1.StatefulSet) {
			plans.Stamp{Plan: "p", Epoch: 1, Seq: 1}.Put(s)
		}, "is being moved by plan p"},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 1}}
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "u", Controller: &yes}}},
			Revision:   1, Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}}}}}`)},
		}
		met := false
		on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set, revision).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, on client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if met {
					return on.Patch(ctx, o, patch, opts...)
				}
				met = true
				var now appsv1.StatefulSet
				if err := on.Get(ctx, client.ObjectKeyFromObject(o), &now); err != nil {
					return err
				}
				c.meanwhile(&now)
				if err := on.Update(ctx, &now); err != nil {
					return err
				}
				return on.Patch(ctx, o, patch, opts...)
			},
		}).Build()
		ref := plans.Ref{Namespace: "shop", Name: "web"}
		h, err := ReadHistory(t.Context(), on, ref)
		if err != nil {
			t.Fatal(err)
		}
		err = h.Undo(t.Context(), h.Revisions[0], false)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
		var now appsv1.StatefulSet
		if err := on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &now); err != nil {
			t.Fatal(err)
		}
		if changed := now.Spec.Template.Labels["app"] == "web"; changed != (c.want == "") {
			t.Errorf("%s: the template was changed: %t", name, changed)
		}
	}
}

// The history of a set has neither revisions nor pods of a former set of the same name. The revision before is the
// newest one that the set does not have, and a dry run stores nothing.
func TestAHistoryIsThatOfItsSet(t *testing.T) {
	yes := true
	revision := func(name string, number int64, uid types.UID) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: uid, Controller: &yes}}},
			Revision:   number, Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web","of":"` + name + `"}}}}}`)},
		}
	}
	former := rolledPod("web-9", "web-a", true)
	former.OwnerReferences[0].UID = "former"
	r, _ := rolls(false, rolledSet(), append(cast("0o 1o 2"), former, revision("web-a", 1, "u"), revision("web-b", 3, "u"), revision("web-z", 2, "former"))...)
	h, err := ReadHistory(t.Context(), r.On, r.Set)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range h.Revisions {
		got = append(got, fmt.Sprintf("%d %s %d", r.Number, r.Name, r.Pods))
	}
	if want := []string{"1 web-a 2", "3 web-b 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, expected %q", got, want)
	}
	before, err := h.Find(0)
	if err != nil || before.Name != "web-a" {
		t.Errorf("before it was %q: %v", before.Name, err)
	}
	for _, dry := range []bool{true, false} {
		h, err := ReadHistory(t.Context(), r.On, r.Set)
		if err != nil {
			t.Fatal(err)
		}
		was := r.stored(t)
		if err := h.Undo(t.Context(), before, dry); err != nil {
			t.Fatal(err)
		}
		if now := r.stored(t); dry && now.ResourceVersion != was.ResourceVersion || !dry && now.Spec.Template.Labels["of"] != "web-a" {
			t.Errorf("dry %t: %+v", dry, now.Spec.Template.Labels)
		}
	}
}

// The revision before is that before the set's template. Where the template has no revision, since it cannot be used, that
// is the newest one. While the controller has not seen the template, nobody knows which it is.
func TestTheRevisionBeforeIsNotGuessed(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		change func(*v1alpha1.StatefulSetSlice)
		want   string // the revision, or the refusal
	}{
		"in use": {func(*v1alpha1.StatefulSetSlice) {}, "web-a"},
		"waits":  {func(s *v1alpha1.StatefulSetSlice) { s.Status.Conditions[0].Reason = "Waiting" }, "web-a"},
		"cannot be used": {func(s *v1alpha1.StatefulSetSlice) {
			s.Status.Conditions[0].Reason = "InvalidTemplate"
		}, "web-b"},
		"was not tried": {func(s *v1alpha1.StatefulSetSlice) {
			s.Status.Conditions[0].Reason = "TemplateNotTried"
		}, "web-b"},
		"is not seen": {func(s *v1alpha1.StatefulSetSlice) { s.Generation++ }, "has not seen generation 3 yet"},
	} {
		slice := v1alpha1.FromNative(rolledSet())
		slice.Status.Conditions = []metav1.Condition{{Type: "Progressing", Reason: "Complete"}}
		c.change(slice)
		there := []client.Object{slice}
		for number, of := range []string{"web-a", "web-b"} {
			there = append(there, &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: of, OwnerReferences: []metav1.OwnerReference{{Name: "web", UID: "u", Controller: &yes}}},
				Revision:   int64(number + 1), Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"of":"` + of + `"}}}}}`)},
			})
		}
		on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(there...).Build()
		h, err := ReadHistory(t.Context(), on, plans.Ref{Namespace: "shop", Name: "web", Kind: plans.SliceKind})
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.Find(0)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && (got.Name != c.want || h.Is(got)) {
			t.Errorf("a template that %s: %q, %v, expected %q", name, got.Name, err, c.want)
		}
		if named, err := h.Find(1); err != nil || named.Name != "web-a" {
			t.Errorf("%s: revision 1 is %q: %v", name, named.Name, err)
		}
	}
}
