package rollout

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/clusters"
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
