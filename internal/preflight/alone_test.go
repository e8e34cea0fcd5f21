package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// lone is a set of one pod without volumes.
func lone(change func(*appsv1.StatefulSet)) []client.Object {
	one, labels := int32(1), map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}
	change(set)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
	pod.Spec.NodeName = "n"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return []client.Object{set, pod}
}

// lonely returns a client that refuses to list what refused names, and no write at all.
func lonely(t *testing.T, refused string, objects ...client.Object) client.Client {
	t.Helper()
	no := func(o client.Object) error {
		t.Errorf("%T is written", o)
		return errors.New("no")
	}
	return clusters.NewMany(checktest.Concurrent(fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return no(o)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if refused != "" && fmt.Sprintf("%TList", o) == refused {
				return apierrors.NewForbidden(schema.GroupResource{Resource: refused}, key.Name, nil)
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if fmt.Sprintf("%T", list) == refused {
				return apierrors.NewForbidden(schema.GroupResource{Resource: refused}, "", nil)
			}
			return c.List(ctx, list, opts...)
		},
	}).Build())).Namespace("shop")
}

func alone(t *testing.T, on client.Client) (*Alone, error) {
	t.Helper()
	return AskAlone(t.Context(), on, plans.Ref{Context: "east", Namespace: "shop", Name: "web"}, check.Caller{})
}

// Every check that needs no destination is asked once, and no other.
func TestASetWithoutADestinationIsAskedTheChecksThatNeedNone(t *testing.T) {
	a, err := alone(t, lonely(t, "", lone(func(*appsv1.StatefulSet) {})...))
	if err != nil {
		t.Fatal(err)
	}
	var asked, want []string
	for _, c := range a.Report.Checks {
		asked = append(asked, c.Name)
	}
	for _, c := range catalogue() {
		if c.alone {
			want = append(want, c.name)
		}
	}
	if !slices.Equal(asked, want) || NeedDestination() != len(catalogue())-len(want) {
		t.Errorf("%v, expected %v", asked, want)
	}
	if len(a.Report.Failed()) > 0 || a.Undecided() || len(a.Unasked) > 0 || a.Within != "" || a.Pods != 1 || a.Plan == nil {
		t.Errorf("%+v: %v", a, a.Report.Failed())
	}
}

// A check that was not asked for want of a right has not passed: whether the set could move is open if it could refuse it.
func TestACheckThatIsNotAskedHasNotPassed(t *testing.T) {
	for refused, c := range map[string]struct {
		checks    string
		undecided bool
	}{
		"*v1.PodList":                     {"budget-alone, claims-unshared, ready-for-a-while, selector, source-settled", true},
		"*v1.PodDisruptionBudgetList":     {"budget-alone", true},
		"*v2.HorizontalPodAutoscalerList": {"autoscaler", true},
		"*v1.NodeList":                    {"drains", false},
		"*v1.PersistentVolumeList":        {"", false}, // it has none
	} {
		a, err := alone(t, lonely(t, refused, lone(func(*appsv1.StatefulSet) {})...))
		if err != nil {
			t.Fatal(refused, err)
		}
		var unasked []string
		for name, rights := range a.Unasked {
			unasked = append(unasked, name)
			if len(rights) == 0 || slices.ContainsFunc(a.Report.Checks, func(r Result) bool { return r.Name == name }) {
				t.Errorf("%s: %s has passed, or for want of %v", refused, name, rights)
			}
		}
		slices.Sort(unasked)
		if strings.Join(unasked, ", ") != c.checks || a.Undecided() != c.undecided || len(a.Report.Failed())+len(a.Report.Warned()) > 0 {
			t.Errorf("%s: %v, %v: %+v", refused, unasked, a.Undecided(), a.Report.Failed())
		}
	}
}

// A set of which no plan can be made is a finding, one that is gone is nothing, and one that may not be read is an error.
func TestASetOfWhichNoPlanCanBeMadeIsAFinding(t *testing.T) {
	a, err := alone(t, lonely(t, "", lone(func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32) })...))
	if err != nil || a.Plan != nil || len(a.Report.Failed()) != 1 || a.Report.Failed()[0].Check != ByPlan || !strings.Contains(a.Report.Failed()[0].Saw, "0 replicas") {
		t.Errorf("%v: %+v", err, a)
	}
	if a, err := alone(t, lonely(t, "")); a != nil || err != nil {
		t.Errorf("%v: %+v", err, a)
	}
	if a, err := alone(t, lonely(t, "*v1.StatefulSetList", lone(func(*appsv1.StatefulSet) {})...)); a != nil || !apierrors.IsForbidden(err) {
		t.Errorf("%v: %+v", err, a)
	}
	a, err = alone(t, lonely(t, "", lone(func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{plans.StampAnnotation: "web-x/1/0"} })...))
	if err != nil || len(a.Report.Checks) != 1 || len(a.Report.Failed()) != 1 || a.Report.Failed()[0].Check != notMigrating || a.Report.NotRun == 0 {
		t.Errorf("%v: %+v", err, a)
	}
}

// What an API server or the way to it says is no reason against a set.
func TestAnErrorOfAReadIsNoReasonAgainstASet(t *testing.T) {
	for text, is := range map[error]bool{
		nil: false, errors.New("the set is odd"): true, context.Canceled: false, apierrors.NewInternalError(errors.New("x")): false, error(&url.Error{Op: "Get", Err: errors.New("away")}): false,
	} {
		if Refuses(text) != is {
			t.Errorf("%v: %v", text, !is)
		}
	}
}

// A set in the namespace that stands for any other one is looked at too.
func TestASetMayBeInAnyNamespace(t *testing.T) {
	objects := lone(func(*appsv1.StatefulSet) {})
	for _, o := range objects {
		o.SetNamespace("elsewhere")
	}
	a, err := AskAlone(t.Context(), lonely(t, "", objects...), plans.Ref{Namespace: "elsewhere", Name: "web"}, check.Caller{})
	if err != nil || len(a.Report.Failed()) > 0 {
		t.Errorf("%v: %+v", err, a)
	}
}
