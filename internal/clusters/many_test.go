package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/reads"
)

// ward is a cluster with pods, claims, volumes and Secrets of two namespaces, and the requests to it.
type ward struct {
	asked  []string
	denies string // the type of what nobody may read
	fails  error  // of lists
}

func (w *ward) many() *Many {
	var objects []client.Object
	for _, namespace := range []string{"shop", "db"} {
		for n := range 2 {
			at := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("web-", n), Labels: map[string]string{"app": fmt.Sprint(n)}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}}
			objects = append(objects, &corev1.Pod{ObjectMeta: at}, &corev1.Secret{ObjectMeta: at}, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: namespace + at.Name}},
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace + at.Name}, Spec: corev1.NodeSpec{Unschedulable: n == 0}})
		}
	}
	ask := func(o any, group string) error {
		kind := fmt.Sprintf("%T", o)
		w.asked = append(w.asked, strings.TrimPrefix(kind, "*v1."))
		if w.denies != "" && strings.HasPrefix(kind, w.denies) {
			return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "things"}, "", nil)
		}
		return nil
	}
	return NewMany(fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := ask(o, "g"); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := ask(list, "g")
			switch {
			case w.fails != nil:
				return w.fails
			case err != nil:
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build())
}

func (w *ward) expect(t *testing.T, asked ...string) {
	t.Helper()
	if fmt.Sprint(w.asked) != fmt.Sprint(asked) {
		t.Errorf("asked for %v, expected %v", w.asked, asked)
	}
	w.asked = nil
}

// What many sets have in common is listed once: that of a namespace as long as its client is there, that of the cluster for
// all of them.
func TestManyListsOnceAndForgetsWithTheNamespace(t *testing.T) {
	w := &ward{}
	m := w.many()
	for range 2 {
		c := m.Namespace("shop")
		for range 3 {
			var pod corev1.Pod
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-1"}, &pod); err != nil || pod.Labels["app"] != "1" || pod.ManagedFields != nil {
				t.Errorf("%v: %+v", err, pod)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-9"}, &pod); !apierrors.IsNotFound(err) {
				t.Error(err)
			}
			var pods corev1.PodList
			if err := c.List(t.Context(), &pods, client.InNamespace("shop"), client.MatchingLabels{"app": "0"}); err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "web-0" {
				t.Errorf("%v: %+v", err, pods.Items)
			}
			if err := c.List(t.Context(), &pods, client.InNamespace("shop"), client.MatchingFields{"metadata.name": "web-1"}); err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "web-1" {
				t.Errorf("%v: %+v", err, pods.Items)
			}
			all := 0
			if err := Each(t.Context(), c, func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(*corev1.PersistentVolume) { all++ }); err != nil || all != 4 {
				t.Error(all, err)
			}
		}
	}
	w.expect(t, "PodList", "PersistentVolumeList", "PodList")
}

// Of what the checks need a few of, a cluster's list keeps these alone. Whole lists are kept apart from them.
func TestManyKeepsOfAClusterWhatIsNeeded(t *testing.T) {
	w := &ward{}
	c := w.many().Namespace("shop")
	cordoned := Only{Of: "cordoned", Keep: func(o client.Object) client.Object {
		if n, ok := o.(*corev1.Node); ok && n.Spec.Unschedulable {
			return n
		}
		return nil
	}}
	for range 2 {
		var some, all corev1.NodeList
		if err := errors.Join(c.List(t.Context(), &some, cordoned), c.List(t.Context(), &all)); err != nil || len(some.Items) != 2 || len(all.Items) != 4 {
			t.Errorf("%v: %d of %d", err, len(some.Items), len(all.Items))
		}
	}
	w.expect(t, "NodeList", "NodeList")
}

// Secrets are never listed: what is in them is not for who needs one of them. A live read goes to the API server.
func TestManyReadsSomeObjectsOneByOne(t *testing.T) {
	w := &ward{}
	c := w.many().Namespace("shop")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
	w.expect(t, "Secret")
	if _, err := reads.Get(t.Context(), reads.From(c), client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); err != nil {
		t.Error(err)
	}
	w.expect(t, "Pod")
}

// What is refused is noted for everyone who needs it, and not asked for again. An error that passes is asked again.
func TestManyNotesTheRightsThatAreMissing(t *testing.T) {
	w := &ward{denies: "*v1.Pod"}
	c := w.many().Namespace("shop")
	for range 3 {
		ctx, missed := Missing(t.Context())
		if err := c.List(ctx, &corev1.PodList{}, client.InNamespace("shop")); !apierrors.IsForbidden(err) {
			t.Error(err)
		}
		if got := missed.Rights(); len(got) != 1 || got[0] != (Right{Resource: "things", Group: "g", Namespace: "shop"}) || got[0].String() != "things.g" {
			t.Errorf("%+v", got)
		}
		ctx, missed = Missing(t.Context())
		if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); !apierrors.IsForbidden(err) || len(missed.Rights()) != 1 {
			t.Error(err, missed.Rights())
		}
		if err := Lenient(c).Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		if err := Lenient(c).List(ctx, &corev1.PodList{}, client.InNamespace("shop")); err != nil {
			t.Error(err)
		}
	}
	w.expect(t, "PodList", "Pod")

	w = &ward{denies: "*v1.PodList"} // single ones may be read
	c = w.many().Namespace("shop")
	ctx, missed := Missing(t.Context())
	if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); err != nil || len(missed.Rights()) != 0 {
		t.Error(err, missed.Rights())
	}

	w = &ward{fails: errors.New("away")}
	c = w.many().Namespace("shop")
	for range 2 {
		if err := c.List(t.Context(), &corev1.PodList{}, client.InNamespace("shop")); err == nil || err.Error() != "away" {
			t.Error(err)
		}
	}
	w.expect(t, "PodList", "PodList")
}

// To find out that a cluster does not know a kind takes requests: it is found out once for all namespaces.
func TestManyAsksOnceForAKindThatNobodyKnows(t *testing.T) {
	w := &ward{fails: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "HorizontalPodAutoscaler"}}}
	m := w.many()
	for _, namespace := range []string{"shop", "db", "shop"} {
		if err := m.Namespace(namespace).List(t.Context(), &autoscalingv2.HorizontalPodAutoscalerList{}, client.InNamespace(namespace)); !meta.IsNoMatchError(err) {
			t.Error(err)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("asked for %v", w.asked)
	}
}
