package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// template changes one annotation of the template; null removes it.
func (s *side) template(t *testing.T, key, value string) {
	t.Helper()
	if err := s.patch(t.Context(), fmt.Sprintf(`{"template":{"metadata":{"annotations":{%q:%s}}}}`, key, value)); err != nil {
		t.Fatal(err)
	}
}

// hasEvent reports whether there is an event about the slice with this reason.
func (s *side) hasEvent(ctx context.Context, reason string) bool {
	var events corev1.EventList
	if err := s.List(ctx, &events, client.InNamespace(s.namespace)); err != nil {
		return false
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason && e.InvolvedObject.Name == "web" })
}

// 3541-45, 3541-39: an update to a template that breaks the highest ordinal stops there. Each remedy of
// docs/slicecontroller.md works: an older template, a fixed one, or OnDelete and deletion by hand.
func TestABrokenUpdateHasThreeWaysOut(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]func(*testing.T, *side){
		"the former template": func(t *testing.T, s *side) { t.Helper(); s.template(t, cluster.NeverReady, "null") },
		"a mended template": func(t *testing.T, s *side) {
			t.Helper()
			if err := s.patch(t.Context(), fmt.Sprintf(`{"template":{"metadata":{"annotations":{%q:null,"mended":"yes"}}}}`, cluster.NeverReady)); err != nil {
				t.Fatal(err)
			}
		},
		"by hand": func(t *testing.T, s *side) {
			t.Helper()
			if err := s.patch(t.Context(), fmt.Sprintf(`{"updateStrategy":{"type":"OnDelete","enforcedRollingUpdate":null},"template":{"metadata":{"annotations":{%q:null}}}}`, cluster.NeverReady)); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-2"}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  updateStrategy: {type: EnforcedRollingUpdate}")); err != nil {
				t.Fatal(err)
			}
			s.updated(t, 3)
			s.template(t, cluster.NeverReady, `"true"`)
			s.until(t, "the highest ordinal is broken", s.has("web-0", "web-1", "web-2!"))
			s.until(t, "the condition says so", func(context.Context) bool {
				return slices.ContainsFunc(s.slice(t).Status.Conditions, func(c metav1.Condition) bool {
					return c.Type == core.Progressing && strings.HasPrefix(c.Message, "pod web-2 is not available")
				})
			})
			out(t, s)
			s.updated(t, 3)
			s.until(t, "all pods are ready", s.has("web-0", "web-1", "web-2"))
		})
	}
}

// 3541-40: no node has room for the first template, and some have room for the next one.
func TestAPodThatFitsNowhereIsReplaced(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 2\n  updateStrategy: {type: EnforcedRollingUpdate}")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 2)
	s.listen(t, &corev1.EventList{})
	room := func(cpu string) {
		t.Helper()
		if err := s.patch(t.Context(), `{"template":{"spec":{"containers":[{"name":"web","image":"web","resources":{"requests":{"cpu":"`+cpu+`"}}}]}}}`); err != nil {
			t.Fatal(err)
		}
	}
	room("1000")
	s.until(t, "it is told that no node has room", func(context.Context) bool {
		return slices.ContainsFunc(s.slice(t).Status.Conditions, func(c metav1.Condition) bool { return c.Message == "pod web-1 is not available: Unschedulable" })
	})
	room("100m")
	s.updated(t, 2)
	s.until(t, "ER-6: the replacement is told", func(ctx context.Context) bool { return s.hasEvent(ctx, "ForcedReplacement") })
}

// 3541-46, ER-20: a replacement that the quota refuses is missing and is reported, and no other pod is
// deleted. When there is room again, the update continues.
func TestAFullQuotaStopsAnUpdate(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  podManagementPolicy: Parallel\n  updateStrategy: {type: EnforcedRollingUpdate}")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 3)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "room"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	if err := s.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	s.listen(t, &corev1.ResourceQuotaList{}, &corev1.EventList{})
	s.until(t, "the quota is in force", func(ctx context.Context) bool {
		return s.Get(ctx, client.ObjectKeyFromObject(quota), quota) == nil && !quota.Status.Hard.Pods().IsZero()
	})
	s.taken()
	s.template(t, "a", `"b"`)
	s.until(t, "it is told", func(ctx context.Context) bool { return s.hasEvent(ctx, "FailedCreate") })
	if got := steps(s.taken()); got != "-2" {
		t.Errorf("with a full quota: %s", got)
	}
	if err := s.Patch(t.Context(), quota, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"pods":"5"}}}`))); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 3)
}

// 2599-12, 961-33: on nodes, a replaced pod is ready for minReadySeconds BEFORE the next one is deleted.
func TestAvailabilityTakesItsTimeOnNodes(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  minReadySeconds: 2")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 3)
	// The clocks of the objects decide, both in whole seconds: on a busy machine the
	// test may receive the events late.
	readyAt, goneAt := map[string]time.Time{}, map[string]time.Time{}
	w, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if p.Annotations["a"] == "b" && isReady(p) {
				k := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
				readyAt[p.Name] = p.Status.Conditions[k].LastTransitionTime.Time
			} else if _, known := goneAt[p.Name]; !known && p.DeletionTimestamp != nil {
				goneAt[p.Name] = p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
			}
		}
	}()
	s.template(t, "a", `"b"`)
	s.updated(t, 3)
	w.Stop()
	<-seen
	for _, pair := range [][2]string{{"web-2", "web-1"}, {"web-1", "web-0"}} {
		ready, gone := readyAt[pair[0]], goneAt[pair[1]]
		if ready.IsZero() || gone.IsZero() || gone.Sub(ready) < 2*time.Second {
			t.Errorf("%s went at %s; %s was ready at %s", pair[1], gone, pair[0], ready)
		}
	}
	if st := s.slice(t).Status; st.AvailableReplicas != 3 {
		t.Errorf("%+v", st)
	}
}

// 961-35: an update of slow pods completes sooner when several may be down at
// once. The test prints by how much.
func TestSeveralAtOnceAreSooner(t *testing.T) {
	t.Parallel()
	// In order, pods are deleted together and recreated one after the other
	// (MU-5), so that little is gained.
	for policy, most := range map[string]float64{"OrderedReady": 1.2, "Parallel": 0.5} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			if err := s.Create(t.Context(), s.written(t, "  replicas: 8\n  minReadySeconds: 2\n  podManagementPolicy: "+policy)); err != nil {
				t.Fatal(err)
			}
			s.updated(t, 8)
			took := map[int]time.Duration{}
			for _, many := range []int{1, 4} {
				if err := s.patch(t.Context(), fmt.Sprintf(`{"updateStrategy":{"rollingUpdate":{"maxUnavailable":%d}}}`, many)); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				if got := s.roll(t, 8, fmt.Sprint(many)); got != many {
					t.Errorf("maxUnavailable %d: %d were down at once", many, got)
				}
				took[many] = time.Since(start)
			}
			ratio := took[4].Seconds() / took[1].Seconds()
			t.Logf("eight pods that take 2 s, %s: one at a time %s, four at a time %s (%.2f)", policy, took[1].Round(time.Millisecond), took[4].Round(time.Millisecond), ratio)
			if ratio > most {
				t.Errorf("four at a time took %.2f of the time of one at a time, expected at most %.2f", ratio, most)
			}
		})
	}
}
