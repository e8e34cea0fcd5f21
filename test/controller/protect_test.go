package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

func (s *side) guarded(t *testing.T) {
	t.Helper()
	if err := s.Create(t.Context(), s.written(t, "  replicas: 2\n  deletionProtection: true")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "two pods", s.has("web-0", "web-1"))
	s.until(t, "the finalizer", func(context.Context) bool { return slices.Contains(s.slice(t).Finalizers, core.Protection) })
}

func (s *side) gone(ctx context.Context) bool {
	return apierrors.IsNotFound(s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, &v1alpha1.StatefulSetSlice{}))
}

// ownerless reports whether the pods exist and have no owner.
func (s *side) ownerless(names ...string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		var list corev1.PodList
		if s.List(ctx, &list, client.InNamespace(s.namespace)) != nil {
			return false
		}
		owned := slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return len(p.OwnerReferences) > 0 })
		return !owned && s.has(names...)(ctx)
	}
}

// With the webhook, a protected slice is not deleted with its pods, neither alone nor by a deletion of all
// slices. It can be deleted without its pods, and with its namespace.
func TestTheDeletionOfAProtectedSliceIsRefused(t *testing.T) {
	t.Parallel()
	s := place(t)
	s.guarded(t)
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		for what, err := range map[string]error{
			"one": s.Delete(t.Context(), s.slice(t), client.PropagationPolicy(how)),
			"all": s.DeleteAllOf(t.Context(), &v1alpha1.StatefulSetSlice{}, client.InNamespace(s.namespace), client.PropagationPolicy(how)),
		} {
			if err == nil || !strings.Contains(err.Error(), "spec.deletionProtection is true, and the slice has 2 pods") {
				t.Errorf("%s, %s: %v", how, what, err)
			}
		}
	}
	if s.slice(t).DeletionTimestamp != nil {
		t.Error("the slice is being deleted")
	}
	if err := s.Delete(t.Context(), s.slice(t), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	s.until(t, "it is gone", s.gone)
	s.until(t, "its pods are not", s.ownerless("web-0", "web-1"))

	s.guarded(t) // another one, which adopts them
	if err := s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "a namespace is not kept", s.gone)
}

// Without a webhook, a deleted slice that is protected continues as before, even if all slices are deleted,
// which is how the deletion of the kind deletes it. It is removed without its pods if it is deleted again
// without them, and with its pods once it is no longer protected.
func TestAProtectedSliceThatIsDeletedGoesOn(t *testing.T) {
	start(t, "--leader-elect=true")
	for name, end := range map[string]func(*side){
		"kept": func(s *side) {
			if err := s.Delete(t.Context(), s.slice(t), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
				t.Fatal(err)
			}
			s.until(t, "it is gone", s.gone)
			s.until(t, "its pods are not", s.ownerless("web-0", "web-1"))
		},
		"deleted": func(s *side) {
			if err := s.patch(t.Context(), `{"deletionProtection":false}`); err != nil {
				t.Fatal(err)
			}
			s.until(t, "it is gone", s.gone)
			s.until(t, "and so are its pods", s.has())
		},
	} {
		s := away(t, name)
		s.guarded(t)
		before := s.uids(t)
		if err := s.DeleteAllOf(t.Context(), &v1alpha1.StatefulSetSlice{}, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		s.until(t, "the condition says what to do", func(context.Context) bool {
			return strings.Contains(s.condition(t, core.DeletionHeld), "--cascade=orphan")
		})
		if err := s.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-1"}}); err != nil {
			t.Fatal(err)
		}
		s.until(t, "a pod that dies comes back", func(ctx context.Context) bool {
			now := s.uids(t)["web-1"]
			return now != "" && now != before["web-1"] && s.has("web-0", "web-1")(ctx)
		})
		if s.uids(t)["web-0"] != before["web-0"] {
			t.Error("web-0 was made anew")
		}
		end(s)
	}
}

// The deletion of the CustomResourceDefinition deletes every slice, and waits for those
// that are protected. Their pods run on. Whoever lets each slice go without its pods, and applies kind and slices
// again, has the same pods as before.
func TestTheDeletionOfTheKindDeletesNoProtectedPod(t *testing.T) {
	start(t, "--leader-elect=true")
	s := away(t)
	s.guarded(t)
	before := s.uids(t)
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("statefulsetslices." + v1alpha1.GroupVersion().Group)
	s.forgetOthers(t)
	if err := s.Delete(t.Context(), definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the condition says what to do", func(context.Context) bool {
		return strings.Contains(s.condition(t, core.DeletionHeld), "--cascade=orphan")
	})
	if diff := cmp.Diff(before, s.uids(t)); diff != "" {
		t.Errorf("the pods have changed: %s", diff)
	}
	if err := s.Delete(t.Context(), s.slice(t), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(s.Get(ctx, client.ObjectKeyFromObject(definition), definition.DeepCopy()))
	})
	if !s.ownerless("web-0", "web-1")(t.Context()) {
		t.Errorf("pods %v, expected both without an owner", s.pods(t.Context()))
	}
	if err := slicerig.Define(t.Context(), s.WithWatch); err != nil {
		t.Fatal(err)
	}
	again := newSide(t, bed.East, s.namespace)
	eventually(t, "the kind is served, and discovery names it", func(ctx context.Context) bool {
		return again.List(ctx, &v1alpha1.StatefulSetSliceList{}, client.InNamespace(s.namespace)) == nil
	})
	again.listen(t, &corev1.PodList{}, &v1alpha1.StatefulSetSliceList{})
	again.guarded(t)
	if diff := cmp.Diff(before, again.uids(t)); diff != "" {
		t.Errorf("the slice has not adopted its pods: %s", diff)
	}
}

// forgetOthers removes the slices of other namespaces, which earlier tests have left without a controller.
func (s *side) forgetOthers(t *testing.T) {
	t.Helper()
	var all v1alpha1.StatefulSetSliceList
	if err := s.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for k := range all.Items {
		o := &all.Items[k]
		if o.Namespace == s.namespace {
			continue
		}
		if err := s.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationOrphan)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err := s.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits for what no watch of the test reports.
func eventually(t *testing.T, what string, is func(context.Context) bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) { return is(ctx), nil }); err != nil {
		t.Fatalf("not within %s: %s", patience, what)
	}
}
