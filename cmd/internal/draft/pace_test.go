package draft

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The pods of the set are read once, by whoever asks first: the estimate costs no request.
func TestTheEstimateReadsWhatTheChecksHaveRead(t *testing.T) {
	p := planstest.Three()
	began := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.Source.Namespace, Name: p.Source.Name, UID: "u"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Source.Namespace, Name: p.Pod(plans.Source, p.Start), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
	pod.Status = corev1.PodStatus{StartTime: &began, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(20 * time.Second))}}}
	requests := 0
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set, pod).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			requests++
			return c.Get(ctx, k, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			requests++
			return c.List(ctx, l, opts...)
		},
	}).Build()
	on := clusters.Clusters{plans.Source: c, plans.Destination: c}.Listed(p)
	checks := clusters.Pair{Plan: p, On: on.Listed(p)} // as preflight.Check reads
	if _, err := checks.Set(t.Context(), plans.Source); err != nil {
		t.Fatal(err)
	}
	if _, err := checks.EveryPod(t.Context(), plans.Source); err != nil {
		t.Fatal(err)
	}
	before := requests
	got, most := Pace(t.Context(), p, p.FirstLeg(), on)
	if !strings.HasPrefix(got, "\nTime: about ") || !strings.Contains(got, "20 s to start (median of 1 pod)") || most < 20*time.Second {
		t.Errorf("%q", got)
	}
	if before == 0 || requests != before {
		t.Errorf("%d requests, and %d before", requests, before)
	}
}
