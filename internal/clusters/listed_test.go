package clusters

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

// listedWorld is a cluster with claims and volumes of the namespaces shop and other, and the number of requests to it.
type listedWorld struct {
	gets, lists int
	fails       error // of lists
}

func (w *listedWorld) clusters(t *testing.T) Clusters {
	t.Helper()
	var objects []client.Object
	for _, namespace := range []string{"shop", "other"} {
		for n := range 3 {
			name := fmt.Sprint(namespace, "-", n)
			objects = append(objects, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
				&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: namespace}}})
		}
	}
	c := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			w.gets++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.lists++
			if w.fails != nil {
				return w.fails
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	one := &plans.Plan{Source: plans.Ref{Cluster: "one", Namespace: "shop"}, Destination: plans.Ref{Cluster: "one", Namespace: "mall"}}
	return Clusters{plans.Source: c, plans.Destination: c}.Listed(one)
}

func (w *listedWorld) expect(t *testing.T, gets, lists int) {
	t.Helper()
	if w.gets != gets || w.lists != lists {
		t.Errorf("%d reads of an object and %d of a list, expected %d and %d", w.gets, w.lists, gets, lists)
	}
}

func TestListedReadsListsInsteadOfObjects(t *testing.T) {
	w := &listedWorld{}
	on := w.clusters(t)
	ctx := t.Context()
	for _, side := range plans.Sides() {
		for n := range 3 {
			name := fmt.Sprint("shop-", n)
			claim, err := Get[corev1.PersistentVolumeClaim](ctx, on[side], "shop", name, "")
			if err != nil || claim == nil || claim.Name != name {
				t.Fatalf("claim %v: %v", claim, err)
			}
			pv, err := Get[corev1.PersistentVolume](ctx, on[side], "", name, "")
			if err != nil || pv == nil || pv.Name != name {
				t.Fatalf("volume %v: %v", pv, err)
			}
			claim.Name, pv.Name = "changed", "changed" // the caller's own copies
			if claim, err := Get[corev1.PersistentVolumeClaim](ctx, on[side], "mall", name, ""); claim != nil || err != nil {
				t.Fatalf("claim %v of the destination: %v", claim, err)
			}
			if pv, err := Get[corev1.PersistentVolume](ctx, on[side], "", "none", ""); pv != nil || err != nil {
				t.Fatalf("volume %v: %v", pv, err)
			}
		}
	}
	w.expect(t, 0, 6) // on each side, whose users may differ: the claims of two namespaces, and the volumes
}

func TestListedReadsAnyOtherObjectOnce(t *testing.T) {
	w := &listedWorld{}
	on := w.clusters(t)[plans.Source]
	for range 2 {
		if c, err := Get[corev1.PersistentVolumeClaim](t.Context(), on, "other", "other-1", ""); err != nil || c == nil || c.Name != "other-1" {
			t.Fatalf("claim %v: %v", c, err)
		}
		if s, err := Get[corev1.Service](t.Context(), on, "shop", "web", ""); err != nil || s != nil {
			t.Fatalf("Service %v: %v", s, err)
		}
	}
	w.expect(t, 2, 0)
	for range 2 {
		var pods corev1.PodList
		if err := on.List(t.Context(), &pods, client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		var claims corev1.PersistentVolumeClaimList
		if err := on.List(t.Context(), &claims, client.InNamespace("shop")); err != nil || len(claims.Items) != 3 {
			t.Fatalf("%d claims: %v", len(claims.Items), err)
		}
		claims.Items[0].Name = "changed"
	}
	w.expect(t, 2, 2)
	for range 2 { // part of a namespace
		if err := on.List(t.Context(), &corev1.PodList{}, client.InNamespace("shop"), client.MatchingLabels{"a": "b"}); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(t, 2, 4)
}

func TestListedReadsOtherObjectsOneByOne(t *testing.T) {
	w := &listedWorld{}
	on := w.clusters(t)[plans.Source]
	if pv, err := Get[corev1.PersistentVolume](t.Context(), on, "", "other-1", ""); err != nil || pv == nil {
		t.Fatalf("volume %v: %v", pv, err)
	}
	w.expect(t, 1, 1)
	if c, err := Get[corev1.PersistentVolumeClaim](t.Context(), on, "other", "other-1", ""); err != nil || c == nil {
		t.Fatalf("claim %v: %v", c, err)
	}
	w.expect(t, 2, 1)
	if err := live(same)(t.Context(), on, client.ObjectKey{Name: "shop-1"}, &corev1.PersistentVolume{}); err != nil {
		t.Fatal(err)
	}
	w.expect(t, 3, 1)
}

func TestListedWithoutARightToList(t *testing.T) {
	w := &listedWorld{fails: apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "", nil)}
	on := w.clusters(t)[plans.Source]
	for _, name := range []string{"shop-1", "shop-2"} {
		if pv, err := Get[corev1.PersistentVolume](t.Context(), on, "", name, ""); err != nil || pv == nil {
			t.Fatalf("volume %v: %v", pv, err)
		}
	}
	w.expect(t, 2, 1)
}

func TestAListThatFailsIsReadAgain(t *testing.T) {
	w := &listedWorld{fails: apierrors.NewTimeoutError("", 1)}
	on := w.clusters(t)[plans.Source]
	if _, err := Get[corev1.PersistentVolume](t.Context(), on, "", "shop-1", ""); !apierrors.IsTimeout(err) {
		t.Fatal(err)
	}
	w.fails = nil
	if pv, err := Get[corev1.PersistentVolume](t.Context(), on, "", "shop-1", ""); err != nil || pv == nil {
		t.Fatalf("volume %v: %v", pv, err)
	}
	w.expect(t, 0, 2)
}

// What the checks ask of a connection besides its objects is there too.
func TestListedKeepsAConnection(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Cluster: "one"}, Destination: plans.Ref{Cluster: "two"}}
	have := Connection{Client: fake.NewClientBuilder().WithScheme(Scheme()).Build(), Doubt: "plain HTTP"}
	on := Clusters{plans.Source: have}.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: {Kind: plans.SliceKind}}).Listed(p)[plans.Source]
	c, ok := Ground(on).(Connection)
	if !ok || c.Doubt != have.Doubt {
		t.Fatalf("%T %q, expected the Connection", c, c.Doubt)
	}
	if _, ok := on.(*listedClient); !ok {
		t.Errorf("its client is %T", on)
	}
}

func TestListedKeepsAClusterThatIsGone(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Cluster: "one"}, Destination: plans.Ref{Cluster: "two"}}
	c := fake.NewClientBuilder().WithScheme(Scheme()).Build()
	on := Clusters{plans.Destination: c}.Gone().Listed(p)
	if _, ok := on[plans.Source].(Gone); !ok {
		t.Errorf("the source is %T, expected Gone", on[plans.Source])
	}
}
