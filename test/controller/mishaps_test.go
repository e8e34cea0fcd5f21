package controller_test

import (
	"context"
	"fmt"
	"maps"
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
	read := s.clocks(t, "a", "b")
	s.template(t, "a", `"b"`)
	s.updated(t, 3)
	at := read()
	for _, pair := range [][2]string{{"web-2", "web-1"}, {"web-1", "web-0"}} {
		ready, gone := at.ready[pair[0]], at.gone[pair[1]]
		if ready.IsZero() || gone.IsZero() || gone.Sub(ready) < 2*time.Second {
			t.Errorf("%s went at %s; %s was ready at %s", pair[1], gone, pair[0], ready)
		}
	}
	if st := s.slice(t).Status; st.AvailableReplicas != 3 {
		t.Errorf("%+v", st)
	}
}

// times are the moments of an update, by pod: when the old one was deleted, and when the new one was made and became
// ready. They are those of the objects, in whole seconds: on a busy machine the test may receive the events late.
type times struct{ gone, made, ready map[string]time.Time }

// clocks notes the times of an update whose pods have an annotation of this value. read ends it.
func (s *side) clocks(t *testing.T, key, value string) (read func() times) {
	t.Helper()
	out := times{map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}}
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
			if p.Annotations[key] == value && isReady(p) {
				k := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
				out.made[p.Name], out.ready[p.Name] = p.CreationTimestamp.Time, p.Status.Conditions[k].LastTransitionTime.Time
			} else if _, known := out.gone[p.Name]; !known && p.DeletionTimestamp != nil {
				out.gone[p.Name] = p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
			}
		}
	}()
	return func() times {
		w.Stop()
		<-seen
		return out
	}
}

// inARow returns how many of the pods of an update were made one after the other at most: each when the one before it
// had been ready for the time that availability takes. An update takes that many such times, however long everything
// else takes on a busy machine.
func (of times) inARow(takes time.Duration) (most int) {
	names := slices.SortedFunc(maps.Keys(of.made), func(a, b string) int { return of.made[a].Compare(of.made[b]) })
	row := map[string]int{}
	for _, name := range names {
		for _, before := range names {
			if !of.ready[before].Add(takes).After(of.made[name]) {
				row[name] = max(row[name], row[before])
			}
		}
		row[name]++
		most = max(most, row[name])
	}
	return most
}

// 961-35: an update of slow pods waits less often when several may be down at once. In order, pods are deleted together
// and recreated one after the other (MU-5), so that little is gained.
func TestSeveralAtOnceAreSooner(t *testing.T) {
	t.Parallel()
	const pods, takes = 8, 2 * time.Second
	for _, policy := range []string{"OrderedReady", "Parallel"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			if err := s.Create(t.Context(), s.written(t, fmt.Sprintf("  replicas: %d\n  minReadySeconds: 2\n  podManagementPolicy: %s", pods, policy))); err != nil {
				t.Fatal(err)
			}
			s.updated(t, pods)
			for _, many := range []int{1, 4} {
				if err := s.patch(t.Context(), fmt.Sprintf(`{"updateStrategy":{"rollingUpdate":{"maxUnavailable":%d}}}`, many)); err != nil {
					t.Fatal(err)
				}
				to := fmt.Sprint(many)
				read := s.clocks(t, "roll", to)
				if got := s.roll(t, pods, to); got != many {
					t.Errorf("maxUnavailable %d: %d were down at once", many, got)
				}
				at := read()
				if len(at.made) != pods {
					t.Fatalf("maxUnavailable %d: %d pods of %d were seen to become ready", many, len(at.made), pods)
				}
				row := at.inARow(takes)
				t.Logf("%s: of %d pods, %d at a time, %d came one after the other", policy, pods, many, row)
				if many == 1 && row != pods || many > 1 && policy == "Parallel" && row > pods/2 {
					t.Errorf("%s: of %d pods, %d at a time, %d came one after the other", policy, pods, many, row)
				}
			}
		})
	}
}
