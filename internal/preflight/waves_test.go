package preflight

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// What is about the whole plan is not asked again before each of many small waves, and is after half a minute. What it
// found is asked again at once.
func TestStandingChecksHoldForAWhile(t *testing.T) {
	i := estateOfTwoSets().Inspected(t)
	allowAll(i.On)
	now, j := time.Unix(1000, 0), journal.New(i.Plan)
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return now }}
	found := func() bool {
		t.Helper()
		all, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all.Bars {
			if f.Check == "owner" {
				return true
			}
		}
		return false
	}
	own := func(owners ...metav1.OwnerReference) {
		t.Helper()
		for _, namespace := range []string{"shop", "mall"} {
			var s appsv1.StatefulSet
			if err := i.On[plans.Source].Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &s); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			} else if err != nil {
				continue
			}
			s.OwnerReferences = owners
			if err := i.On[plans.Source].Update(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	operator := metav1.OwnerReference{APIVersion: "db.example.com/v1", Kind: "Cluster", Name: "web", UID: "o", Controller: new(true)}
	own(operator)
	for range 2 {
		if !found() {
			t.Error("an owner is not found, or not found again")
		}
	}
	if own(); found() {
		t.Error("an owner is found that is no more")
	}
	own(operator)
	if now = now.Add(standingValidity); found() {
		t.Error("it was asked again within half a minute")
	}
	if now = now.Add(time.Second); !found() {
		t.Error("it was not asked again after half a minute")
	}
	own()
	found()
	own(operator)
	if now = now.Add(-time.Hour); !found() {
		t.Error("it was not asked again by a clock that was set back")
	}
}

// Answers that are void are asked for again at once, also those of a check that runs meanwhile.
func TestStandingChecksAreVoidWhenAnOrdinalWasUnavailable(t *testing.T) {
	now := time.Unix(1000, 0)
	w := Waves{Now: func() time.Time { return now }}
	asks := func() bool {
		return slices.ContainsFunc(w.due(plans.Move, now), func(r row) bool { return r.wave == standing })
	}
	ran := w.due(plans.Move, now)
	w.note(plans.Move, now, w.voided(), ran, make([]Result, len(ran)))
	if asks() {
		t.Fatal("what has just passed is asked again")
	}
	if w.Void(); !asks() {
		t.Error("what is void is not asked again")
	}
	before := w.voided()
	w.Void()
	if w.note(plans.Move, now, before, ran, make([]Result, len(ran))); !asks() {
		t.Error("what was asked before that counts")
	}
}

// The checks before the first write have asked everything a moment ago. They were about a Move.
func TestWhatPassedBeforeTheStartIsNotAskedAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		passed    time.Time
		direction plans.Direction
		asks      bool
	}{
		"never":        {direction: plans.Move, asks: true},
		"just now":     {passed: now.Add(-standingValidity), direction: plans.Move},
		"long ago":     {passed: now.Add(-standingValidity - 1), direction: plans.Move, asks: true},
		"for an abort": {passed: now, direction: plans.Abort, asks: true},
	} {
		w := Waves{Now: func() time.Time { return now }}
		if !c.passed.IsZero() {
			w.Passed(c.passed)
		}
		if asks := slices.ContainsFunc(w.due(c.direction, now), func(r row) bool { return r.wave == standing }); asks != c.asks {
			t.Errorf("%s: asked again %t, expected %t", name, asks, c.asks)
		}
	}
}

// An orchestrator has no rights but those of the Roles that `rbac` prints. A quota that another workload has used up since
// the start bars its next wave: otherwise the pods of the wave would be refused with their ordinals down.
func TestAnOrchestratorSeesTheQuotasBetweenWaves(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "q"}}
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("5")}
	quota.Status.Used = corev1.ResourceList{"pods": resource.MustParse("5")}
	e := estateOfTwoSets()
	e.There = append(e.There, quota)
	i := e.Inspected(t)
	onlyRoles(i)
	now := func() time.Time { return time.Unix(1000, 0) }
	w := Waves{Plan: i.Plan, On: i.On, Now: now, Orchestrated: now}
	found, err := w.Check(t.Context(), journal.New(i.Plan), plans.Slice{Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found.Bars, func(f check.Finding) bool {
		return f.Check == "quota" && strings.Contains(f.Saw, "pods: 0 of 5 are left")
	}) {
		t.Errorf("the wave may leave: %v", found)
	}
}

// onlyRoles lets the clients read what the printed Roles of an orchestrator allow.
func onlyRoles(i check.Inspection) {
	for side, c := range i.On {
		rules := map[string][]rbacv1.PolicyRule{} // by namespace
		for _, o := range access.Roles(i.Plan, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, nil) {
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				rules[""] = append(rules[""], o.Rules...)
			case *rbacv1.Role:
				rules[o.Namespace] = append(rules[o.Namespace], o.Rules...)
			}
		}
		may := func(verb string, o runtime.Object, namespace string) error {
			kind, err := c.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			plural, _ := meta.UnsafeGuessKindToResource(kind.GroupVersion().WithKind(strings.TrimSuffix(kind.Kind, "List")))
			if slices.ContainsFunc(slices.Concat(rules[""], rules[namespace]), func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, kind.Group) && slices.Contains(r.Resources, plural.Resource)
			}) {
				return nil
			}
			return apierrors.NewForbidden(plural.GroupResource(), "", nil)
		}
		i.On[side] = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := may("get", o, key.Namespace); err != nil {
					return err
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := may("list", list, (&client.ListOptions{}).ApplyOptions(opts).Namespace); err != nil {
					return err
				}
				return c.List(ctx, list, opts...)
			},
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				if review, ok := o.(*authorizationv1.SelfSubjectRulesReview); ok {
					for _, r := range slices.Concat(rules[""], rules[review.Spec.Namespace]) {
						review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
					}
					return nil
				}
				return apierrors.NewForbidden(schema.GroupResource{}, o.GetName(), nil)
			},
		})
	}
}

// The engine starts a check anew without awaiting one that takes too long.
func TestAWaveMayBeCheckedWhileAnEarlierCheckRuns(t *testing.T) {
	i := estateOfTwoSets().Inspected(t)
	allowAll(i.On)
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
	var checks sync.WaitGroup
	for range 4 {
		checks.Go(func() {
			if _, err := w.Check(t.Context(), journal.New(i.Plan), plans.Slice{Replicas: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	checks.Wait()
}

// A wave is asked about together with those that follow it, in the order of the leg.
func TestTheWavesThatFollowAreThoseOfTheLeg(t *testing.T) {
	p := &plans.Plan{Start: 0, Count: 5, Window: 2}
	for _, c := range []struct {
		leg  plans.Leg
		next plans.Slice
		want string
	}{
		{p.FirstLeg(), plans.Slice{Start: 3, Replicas: 2}, "[3..4][1..2][0]"},
		{p.FirstLeg(), plans.Slice{Start: 1, Replicas: 2}, "[1..2][0]"},
		{p.FirstLeg(), plans.Slice{Start: 0, Replicas: 1}, "[0]"},
		{plans.Leg{Direction: plans.Move, Lowest: 2, End: 5}, plans.Slice{Start: 3, Replicas: 2}, "[3..4][2]"}, // to a split
		{plans.Leg{Direction: plans.Abort, Lowest: 1, End: 5}, plans.Slice{Start: 1, Replicas: 2}, "[1..2][3..4]"},
	} {
		said := ""
		for _, s := range coming(p, c.leg, c.next) {
			said += s.String()
		}
		if said != c.want {
			t.Errorf("%+v: %s, expected %s", c.next, said, c.want)
		}
	}
}
