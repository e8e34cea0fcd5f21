package muster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// pod is a pod that is Ready since a second, unless that is 0.
func pod(ref plans.Ref, name string, uid types.UID, since int64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: name, UID: uid}}
	c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if since > 0 {
		c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.Unix(since, 0)
	}
	p.Status.Conditions = []corev1.PodCondition{c}
	return p
}

// An ordinal that is not as it was at the last call has been unavailable, whether or not it is back. The first call knows of
// none.
func TestWhoeverWasUnavailableIsMissed(t *testing.T) {
	p := planstest.Named(t, "abc")
	from, to := p.On(plans.Source), p.On(plans.Destination)
	ending := pod(from, "web-0", "a", 100)
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Unix(200, 0)}, []string{"example.com/kept"}
	down := func(since int64) *corev1.Pod {
		p := pod(from, "web-0", "a", 0)
		p.Status.Conditions[0].LastTransitionTime = metav1.Unix(since, 0)
		return p
	}
	starts := pod(from, "web-0", "a", 0)
	starts.Status.Conditions = nil
	for name, c := range map[string]struct {
		before, now *corev1.Pod // of web-0
		wave        plans.Slice // the one before
		gone        string
	}{
		"nobody":                  {pod(from, "web-0", "a", 100), pod(from, "web-0", "a", 100), plans.Slice{Start: 2, Replicas: 1}, ""},
		"one that is down":        {pod(from, "web-0", "a", 100), pod(from, "web-0", "a", 0), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that is back":        {pod(from, "web-0", "a", 100), pod(from, "web-0", "a", 101), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that was made again": {pod(from, "web-0", "a", 100), pod(from, "web-0", "b", 100), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that is not there":   {pod(from, "web-0", "a", 100), nil, plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that ends":           {pod(from, "web-0", "a", 100), ending, plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one of the other side":   {pod(to, "web-0", "a", 100), pod(to, "web-0", "a", 101), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of mall/web"},
		"one that was down":       {pod(from, "web-0", "a", 0), pod(from, "web-0", "a", 100), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that stays down":     {down(100), down(100), plans.Slice{Start: 2, Replicas: 1}, ""},
		"one that was up between": {down(100), down(101), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that starts":         {nil, starts, plans.Slice{Start: 2, Replicas: 1}, ""},
		"one that ends, still":    {ending, ending, plans.Slice{Start: 2, Replicas: 1}, ""},
		"one that has come":       {nil, pod(from, "web-0", "a", 100), plans.Slice{Start: 2, Replicas: 1}, "pod web-0 of shop/web"},
		"one that the plan moved": {pod(from, "web-0", "a", 100), pod(to, "web-0", "b", 101), plans.Slice{Start: 0, Replicas: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r Roll
			for n, one := range []*corev1.Pod{c.before, c.now} {
				b := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(pod(from, "web-1", "x", 50), pod(from, "other-0", "o", int64(n)))
				if one != nil {
					b = b.WithObjects(one)
				}
				api := b.Build()
				w := clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: api, plans.Destination: api}}
				wave := c.wave
				if n == 1 {
					wave = plans.Slice{Start: 1, Replicas: 1}
				}
				gone, err := r.Call(t.Context(), w, wave)
				if want := map[bool]string{true: c.gone}[n == 1]; err != nil || len(gone) < len(want) || gone[:len(want)] != want || want == "" && gone != "" {
					t.Errorf("call %d: %q, %v; expected %q", n, gone, err, want)
				}
			}
		})
	}
}
