package sets

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// rotated returns steps whose Secret has another value on each side, or the same, and clients that may not read it on a side.
func rotated(same bool, closed plans.Side) (w Steps, on map[plans.Side]client.Client) {
	on = map[plans.Side]client.Client{}
	for side, namespace := range map[plans.Side]string{plans.Source: "shop", plans.Destination: "mall"} {
		value := string(side)
		if same {
			value = "same"
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pw"}, Data: map[string][]byte{"password": []byte("canary-" + value)}}
		on[side] = clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if side == closed {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
	}
	p := &plans.Plan{
		Source: plans.Ref{Cluster: "1", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "2", Namespace: "mall", Name: "web"},
		Dependencies: []plans.Dependency{{Kind: "Secret", Name: "pw"}, {Kind: "Secret", Name: "made", Required: "made by hand"}},
	}
	return Steps{Pair: clusters.Pair{Plan: p, On: on}}, on
}

// Who may not read an object on a side learns nothing of it: that is said, and nothing leaves.
func TestWhatMayNotBeReadHolds(t *testing.T) {
	for _, side := range plans.Sides() {
		for _, same := range []bool{true, false} {
			w, _ := rotated(same, side)
			s, err := comparisonOf(w).otherCopies(t.Context(), plans.StepContext{Step: plans.Step{From: plans.Source}})
			if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Secret/pw") {
				t.Errorf("the %s may not be read: %v (%v)", side, s, err)
			}
		}
	}
}

// That objects are the same is believed for five seconds, and not when it was voided. That they differ is never believed.
func TestThatObjectsAreTheSameHasAnAge(t *testing.T) {
	now := time.Unix(1000, 0)
	w, on := rotated(true, "")
	w.Twice = &Twice{Now: func() time.Time { return now }}
	look := func() plans.Standing {
		s, err := comparisonOf(w).otherCopies(t.Context(), plans.StepContext{Step: plans.Step{From: plans.Source}})
		if err != nil || strings.Contains(s.Reason, "canary") {
			t.Fatal(s.Reason, err)
		}
		return s.Standing
	}
	write := func(value string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "pw"}, Data: map[string][]byte{"password": []byte("canary-" + value)}}
		if err := on[plans.Destination].Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	first := look()
	write("new")
	young := look()
	now = now.Add(equalFor + time.Second)
	old := look()
	write("same")
	again := look()
	write("new")
	w.Twice.Void()
	if voided := look(); first != plans.After || young != plans.After || old != plans.During || again != plans.After || voided != plans.During {
		t.Errorf("%v, then %v, then %v, then %v, then %v", first, young, old, again, voided)
	}
}
