package slicecontroller

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// sliceRig returns a Reconciler of slices over a cache that is never behind, with one slice.
func sliceRig(t *testing.T, clock *time.Time, does interceptor.Funcs) *Reconciler {
	t.Helper()
	slice := &v1alpha1.StatefulSetSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}}
	slice.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	slice.Spec.Template.Labels = slice.Spec.Selector.MatchLabels
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(slice).WithObjects(slice).WithInterceptorFuncs(does)
	for _, i := range indexes() {
		b.WithIndex(i.of, i.name, i.values)
	}
	c := b.Build()
	return &Reconciler{
		kind: sliced(core.Traits{}), client: c, live: c, events: &record.FakeRecorder{}, now: func() time.Time { return *clock },
		ledger: newLedger(), gauges: newGauges(), memories: map[types.NamespacedName]*memory{},
	}
}

// The status of a set wakes the set at once. A pass that fails in other words at each attempt must not wake it by
// that, but be retried with back-off.
func TestAFailureInOtherWordsDoesNotWakeItsSet(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	attempts := 0
	q := &delays{}
	var r *Reconciler
	r = sliceRig(t, &clock, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, is := o.(*corev1.Pod); is {
				attempts++
				return fmt.Errorf("denied, request %d", attempts)
			}
			o.SetUID(types.UID("uid-" + o.GetName()))
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			was, _ := o.DeepCopyObject().(client.Object)
			err := c.SubResource(sub).Update(ctx, o, opts...)
			r.heard(r.itself, r.itself).Update(ctx, event.UpdateEvent{ObjectOld: was, ObjectNew: o}, q)
			return err
		},
	})
	pass := func(after time.Duration) {
		clock = clock.Add(after)
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: web()}); err == nil {
			t.Error("it does not fail")
		}
	}
	for range 50 {
		pass(time.Second)
	}
	if attempts != 50 || len(q.added) != 1 {
		t.Errorf("%d attempts in 50 seconds have woken the set %d times", attempts, len(q.added))
	}
	if pass(time.Minute); len(q.added) != 2 {
		t.Errorf("a minute later the set was woken %d times", len(q.added))
	}
}
