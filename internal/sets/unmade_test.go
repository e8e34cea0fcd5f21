package sets

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// Why a pod is not created is what the controller of its set has said last, without numbers that change meanwhile. Who may
// not read that waits without it.
func TestAPodThatIsNotCreatedHasTheReasonOfItsController(t *testing.T) {
	noon := planstest.Noon()
	p := planstest.Named(t, "abc")
	set := planstest.Set(2, 1)
	set.Namespace, set.Name = p.Destination.Namespace, p.Destination.Name
	set.UID, set.Generation, set.Status.ObservedGeneration = "this", 2, 2
	event := func(of types.UID, minute int, message string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: set.Namespace, Name: message[:3] + string(of)},
			InvolvedObject: corev1.ObjectReference{Name: set.Name, UID: of}, Reason: "FailedCreate", Message: message, LastTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)),
		}
	}
	events := []client.Object{
		event("this", 1, "old: nothing"), event("former", 9, "create Pod web-2 failed for the former set"),
		event("this", 5, `create Pod web-2 in StatefulSet web failed error: pods "web-2" is forbidden: exceeded quota: all, requested: pods=1, used: pods=3, limited: pods=3`),
	}
	refuse := false
	on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(events...).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).
		WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string { return []string{o.(*corev1.Event).Reason} }).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			if _, is := into.(*corev1.EventList); is && refuse {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
			}
			return c.List(ctx, into, opts...)
		}}).Build()
	w := Steps{Pair: clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: on, plans.Destination: on}}}
	step, m := plans.Step{Op: plans.Grow, From: plans.Source, Ordinals: plans.Slice{Start: 2, Replicas: 1}}, plans.StepContext{}
	m.Step = step
	wait := arrivalOf(w.Pair).comes(m, 2, nil)
	if got := arrivalOf(w.Pair).missing(t.Context(), m, set, wait); !strings.HasSuffix(got.Reason, `does not exist yet: create Pod web-2 in StatefulSet web failed error: pods "web-2" is forbidden: exceeded quota: all, requested: pods=1`) || got.Again == 0 {
		t.Errorf("%+v", got)
	}
	refuse = true
	if got := arrivalOf(w.Pair).missing(t.Context(), m, set, wait); got.Reason != wait.Reason {
		t.Errorf("without the right: %+v", got)
	}
	refuse = false
	set.Generation = 3
	if got := arrivalOf(w.Pair).missing(t.Context(), m, set, wait); got.Reason != wait.Reason {
		t.Errorf("before the controller has seen the range: %+v", got)
	}
}

// A pod that no scheduler looks at has no condition that says why.
func TestAPodWithoutASchedulerNamesIt(t *testing.T) {
	refused := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
	for name, c := range map[string]struct {
		scheduler  string
		conditions []corev1.PodCondition
		want       string
	}{
		"none of that name":  {"fancy", nil, "is not scheduled: no scheduler has looked at it (its schedulerName is fancy)"},
		"it has looked":      {"fancy", refused, "is not scheduled: 0/3 nodes are available"},
		"that of Kubernetes": {corev1.DefaultSchedulerName, nil, "is not scheduled"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: c.scheduler}, Status: corev1.PodStatus{Conditions: c.conditions}}
		if got := Ready(pod); got != c.want {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}
