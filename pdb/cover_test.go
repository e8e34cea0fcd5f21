package pdb

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

func set(namespace string) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "set"}}
	s.Spec.Template.Labels = map[string]string{"app": "web"}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: s.Spec.Template.Labels}
	return s
}

func by(label, value string) change {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
	}
}

func named(name string) change {
	return func(b *policyv1.PodDisruptionBudget) { b.Name = name }
}

// Before an ordinal goes down, its side has exactly one budget over its pods (S12).
func TestNoOrdinalGoesWithoutOneBudgetOverThePods(t *testing.T) {
	ours := stamped("web-abc/1/9")
	leader := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-0", Labels: map[string]string{"app": "web", "role": "master"}}}
	leader.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "set", Controller: new(true)}}
	for _, c := range []struct {
		name   string
		op     plans.Op
		world  []client.Object
		want   plans.Standing
		reason string
	}{
		{"both are over the pods", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"one was narrowed, and still is over them", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours, by(appsv1.StatefulSetPodNameLabel, "web-0"), by("app", "web")), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"one was turned to others", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours, by("app", "mail")), budget("mall", atMost("0"), ours)}, plans.Conflict, "PodDisruptionBudget web of shop/web no longer selects the pods of the set: its selector was changed to app=mail by an unknown client; set it back"},
		{"one was narrowed to some of them", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("0"), ours, by(appsv1.PodIndexLabel, "0"))}, plans.Conflict, "of mall/web no longer selects the pods"},
		{"it is seen before the budgets open", plans.Relax, []client.Object{budget("shop", atLeast(5), ours, by("app", "mail")), budget("mall", atMost("0"), ours)}, plans.Conflict, "of shop/web no longer selects the pods"},
		{"none is made beside another", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("1"), named("theirs"))}, plans.Conflict, "PodDisruptionBudget theirs of mall/web was created by another writer after the plan was made, and selects the same pods"},
		{"none is made beside one over a pod that got a label", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), leader, budget("mall", atMost("1"), named("theirs"), by("role", "master"))}, plans.Conflict, "PodDisruptionBudget mall/theirs: it selects pod web-0"},
		{"those over others do not matter", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("1"), named("theirs"), by("app", "mail"))}, plans.Before, "destination: create PodDisruptionBudget web"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(set("shop"), set("mall")).WithObjects(c.world...).Build()
			on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
			s, err := seen(t, on, moment(c.op), looking(c.op))
			if err != nil || s.Standing != c.want || !strings.Contains(s.Reason, c.reason) {
				t.Errorf("%s (%s), %v, expected %s (%s)", s.Standing, s.Reason, err, c.want, c.reason)
			}
		})
	}
}

// A creation that a fenced process sent earlier may arrive between two reads of one look. It is no rival: the
// look asks for its own creation, which the API server refuses, and the next look judges what is there.
func TestABudgetThatArrivesDuringALookIsNoRival(t *testing.T) {
	ours := stamped("web-abc/1/9")
	late := false
	api := fake.NewClientBuilder().WithObjects(set("shop"), set("mall"), budget("shop", atLeast(5), ours), budget("mall", atMost("0"), stamped("web-abc/0/9"))).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*policyv1.PodDisruptionBudget); ok && key.Namespace == "mall" && !late {
				return apierrors.NewNotFound(policyv1.Resource("poddisruptionbudgets"), key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		}}).Build()
	looks := Looks(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, nil)
	s, err := looks[plans.Tighten](t.Context(), moment(plans.Tighten))
	if err != nil || s.Standing != plans.Before {
		t.Fatalf("%s (%s), %v, expected %s", s.Standing, s.Reason, err, plans.Before)
	}
	late = true // the read cache has it
	if err := s.Write(t.Context()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the creation returned %v, expected that the budget exists", err)
	}
	if s, err = looks[plans.Tighten](t.Context(), moment(plans.Tighten)); err != nil || s.Standing != plans.After {
		t.Errorf("the next look: %s (%s), %v, expected %s", s.Standing, s.Reason, err, plans.After)
	}
}
