package clusters

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAWaitEndsOnlyWithNewsOfWhatWasLookedAt(t *testing.T) {
	pod := func(name string) ObjectKey { return ObjectKey{plans.Source, "Pod", "shop", name} }
	seen := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "90"}}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "100"}}
	one := &ReadCache{Objects: map[ObjectKey]client.Object{pod("web-4"): seen, pod("web-5"): nil}}
	for _, c := range []struct {
		name   string
		glance *ReadCache
		of     ObjectKey
		change Change
		want   bool
	}{
		{"the object itself, later", one, pod("web-4"), Change{Version: "100"}, true},
		{"the very version that was read", one, pod("web-4"), Change{Version: "90"}, false},
		{"an earlier version, told late", one, pod("web-4"), Change{Version: "89"}, false},
		{"the object is gone", one, pod("web-4"), Change{Version: "89", Gone: true}, true},
		{"a version that cannot be compared", one, pod("web-4"), Change{Version: "v"}, true},
		{"an absent one has come", one, pod("web-5"), Change{Version: "1"}, true},
		{"an absent one is gone", one, pod("web-5"), Change{Version: "100", Gone: true}, false},
		{"another object", one, pod("web-0"), Change{Version: "100"}, false},
		{"the same name on the other side", one, ObjectKey{plans.Destination, "Pod", "shop", "web-4"}, Change{Version: "100"}, false},
		{"the same name of another kind", one, ObjectKey{plans.Source, "StatefulSet", "shop", "web-4"}, Change{Version: "100"}, false},
		{"one of a list, later", &ReadCache{Lists: map[ObjectKey]client.ObjectList{pod(""): list}}, pod("x"), Change{Version: "101"}, true},
		{"one of a list, as it was", &ReadCache{Lists: map[ObjectKey]client.ObjectList{pod(""): list}}, pod("x"), Change{Version: "100"}, false},
		{"one of a list is gone", &ReadCache{Lists: map[ObjectKey]client.ObjectList{pod(""): list}}, pod("x"), Change{Version: "9", Gone: true}, true},
		{"one of a list of all namespaces", &ReadCache{Lists: map[ObjectKey]client.ObjectList{{Cluster: plans.Source, Kind: "Pod"}: list}}, pod("x"), Change{Version: "101"}, true},
		{"one of a list in pages, later", &ReadCache{paged: map[ObjectKey]string{pod(""): "100"}}, pod("x"), Change{Version: "101"}, true},
		{"one of a list in pages, as it was", &ReadCache{paged: map[ObjectKey]string{pod(""): "100"}}, pod("x"), Change{Version: "100"}, false},
		{"one of a list in pages is gone", &ReadCache{paged: map[ObjectKey]string{pod(""): "100"}}, pod("x"), Change{Version: "9", Gone: true}, true},
	} {
		if got := c.glance.Outdated(Changes{Of: map[ObjectKey]Change{c.of: c.change}}); got != c.want {
			t.Errorf("%s: outdated is %v, expected %v", c.name, got, c.want)
		}
	}
}

func TestALookReadsEachObjectOnce(t *testing.T) {
	reads := 0
	c := fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-4"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				reads++
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				reads++
				return c.List(ctx, l, opts...)
			},
		}).Build()
	g := &ReadCache{}
	g.Clear()
	on := g.Clients(&plans.Plan{Source: plans.Ref{Cluster: "1"}, Destination: plans.Ref{Cluster: "1"}}, Clusters{plans.Source: c, plans.Destination: c})

	for _, side := range plans.Sides() { // both sides are one cluster
		var pod corev1.Pod
		if err := on[side].Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-4"}, &pod); err != nil || pod.Name != "web-4" {
			t.Errorf("read %q: %v", pod.Name, err)
		}
		pod.Name = "changed" // a look changes its copy: the next look must not observe that
		if err := on[side].Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-5"}, &pod); !apierrors.IsNotFound(err) {
			t.Errorf("an absent pod: %v", err)
		}
		var list corev1.PodList
		if err := on[side].List(t.Context(), &list, client.InNamespace("shop")); err != nil || len(list.Items) != 1 {
			t.Errorf("listed %d: %v", len(list.Items), err)
		}
	}
	if reads != 3 {
		t.Errorf("%d reads, expected 3", reads)
	}
	g.Clear()
	if err := on[plans.Source].Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-4"}, &corev1.Pod{}); err != nil || reads != 4 {
		t.Errorf("the next look read nothing (%d reads): %v", reads, err)
	}
}

// An object that is needed with every field, also those that this program does not know, is read whole, whatever the
// cache has of it.
func TestAWholeObjectIsNotReadFromTheCache(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-4", Labels: map[string]string{"app": "web"}}}).Build()
	g := &ReadCache{}
	g.Clear()
	on := g.Clients(&plans.Plan{}, Clusters{plans.Source: c})[plans.Source]
	key := client.ObjectKey{Namespace: "shop", Name: "web-4"}
	if err := on.Get(t.Context(), key, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := on.Get(t.Context(), key, whole); err != nil || whole.GetLabels()["app"] != "web" {
		t.Errorf("read %v, %v", whole.Object, err)
	}
	if err := c.Patch(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-4"}}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"shop"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := on.Get(t.Context(), key, whole); err != nil || whole.GetLabels()["app"] != "shop" {
		t.Errorf("read %v, %v", whole.Object, err)
	}
	var cached corev1.Pod
	if err := on.Get(t.Context(), key, &cached); err != nil || cached.Labels["app"] != "web" {
		t.Errorf("the look sees %v, %v: it must see one state of the object to its end", cached.Labels, err)
	}
}

// Of a list that was read for a selection, nothing is answered that is about all objects: the others may be missing.
func TestAListOfASelectionAnswersForNoOther(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	reads := 0
	c := fake.NewClientBuilder().WithObjects(pod("web-0"), pod("report")).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			reads++
			err := c.List(ctx, list, client.InNamespace("shop"))
			for _, o := range opts {
				if only, ok := o.(Only); ok { // as the client does that keeps lists
					pods := list.(*corev1.PodList)
					pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return only.Keep(&p) == nil })
				}
			}
			return err
		},
	}).Build()
	g := &ReadCache{}
	g.Clear()
	on := g.Clients(&plans.Plan{}, Clusters{plans.Source: c})[plans.Source]
	one := func(name string) Only {
		return Only{Of: name, Keep: func(o client.Object) client.Object {
			if o.GetName() != name {
				return nil
			}
			return o
		}}
	}
	for k, c := range []struct {
		only  client.ListOption
		want  string
		reads int
	}{
		{one("web-0"), "web-0 ", 1},
		{one("web-0"), "web-0 ", 1},
		{client.InNamespace("shop"), "report web-0 ", 2},
		{one("report"), "report ", 3},
		{client.InNamespace("shop"), "report web-0 ", 4},
		{client.InNamespace("shop"), "report web-0 ", 4},
	} {
		var list corev1.PodList
		if err := on.List(t.Context(), &list, client.InNamespace("shop"), c.only); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range list.Items {
			got += p.Name + " "
		}
		if got != c.want || reads != c.reads {
			t.Errorf("list %d: %q after %d reads, expected %q after %d", k, got, reads, c.want, c.reads)
		}
	}
}

func TestChangesDuringALookAreNotLost(t *testing.T) {
	w := NewChangeSignal()
	w.Notify(ObjectKey{Name: "a"}, Change{Version: "1"})
	w.Notify(ObjectKey{Name: "b"}, Change{Version: "2"})
	w.Notify(ObjectKey{Name: "a"}, Change{Version: "3"})
	<-w.C()
	if got := w.Take(); len(got.Of) != 2 || got.Of[ObjectKey{Name: "a"}].Version != "3" || got.much {
		t.Errorf("took %v", got)
	}
	select {
	case <-w.C():
		t.Error("the bell rang twice for one take")
	default:
	}
}

// Changes that no reader takes are not tracked for ever: at the limit, anything may have changed.
func TestManyChangesAreNotRemembered(t *testing.T) {
	w, g := NewChangeSignal(), &ReadCache{}
	for k := range 3 * maxTrackedChanges {
		w.Notify(ObjectKey{Name: fmt.Sprint("pv-", k)}, Change{Version: "1"})
		if got := len(w.changes.Of); got > maxTrackedChanges {
			t.Fatalf("%d are remembered", got)
		}
	}
	if !g.Outdated(w.Take()) {
		t.Error("none of it is news")
	}
	if g.Outdated(w.Take()) {
		t.Error("it is news for a second time")
	}
}
