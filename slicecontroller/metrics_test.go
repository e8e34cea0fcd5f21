package slicecontroller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// history runs the passes of one set, whose metrics a test compares.
type history struct {
	*gauges
	w core.World
}

func newStory() *history {
	s := &history{gauges: newGauges()}
	s.w = core.World{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Set: &core.Set{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}}
	s.w.Set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	s.w.Set.Spec.UpdateStrategy.Type = core.EnforcedRollingUpdate
	return s
}

func (s *history) pass(after time.Duration, from, to string, forced ...core.Forced) {
	s.w.Now = s.w.Now.Add(after)
	s.observe(s.w, core.Outcome{
		MaxUnavailable: 2, Unavailable: 1, Forced: forced,
		Status: &core.Status{StatefulSetStatus: appsv1.StatefulSetStatus{CurrentRevision: from, UpdateRevision: to}},
	})
}

func (s *history) pod(name, uid string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.w.Pods = []*corev1.Pod{p}
}

func (s *history) expect(t *testing.T, want string, names ...string) {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := s.register(r); err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// 961-47, 3541-30 to 3541-34: an update that completes, with a pod that was replaced by force. 3541-30 and
// 3541-31 are the counters, and 3541-34 is the number of sets by strategy.
func TestTheMetricsOfAnUpdate(t *testing.T) {
	s := newStory()
	s.w.Revisions = []*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: metav1.NewTime(s.w.Now)}}}
	s.pass(0, "a", "a")
	s.pass(time.Second, "a", "b", core.Forced{Pod: "web-2", UID: "old", Stuck: time.Hour})
	s.pod("web-2", "old")
	s.pass(time.Second, "a", "b")
	s.pod("web-2", "new")
	s.pass(8*time.Second, "a", "b")
	s.pass(time.Second, "b", "b")
	s.expect(t, `
# HELP statefulset_controller_statefulset_max_unavailable How many pods an update may take down at once, as a number of pods (KEP-961).
# TYPE statefulset_controller_statefulset_max_unavailable gauge
statefulset_controller_statefulset_max_unavailable{pod_management_policy="Parallel",statefulset_name="web",statefulset_namespace="shop"} 2
# HELP statefulset_controller_statefulset_unavailable_replicas How many ordinals of the range have no available pod.
# TYPE statefulset_controller_statefulset_unavailable_replicas gauge
statefulset_controller_statefulset_unavailable_replicas{pod_management_policy="Parallel",statefulset_name="web",statefulset_namespace="shop"} 1
# HELP statefulset_enforced_rolling_updates_total Updates by EnforcedRollingUpdate that completed, or failed: were superseded, or ended with their set or its strategy (KEP-3541).
# TYPE statefulset_enforced_rolling_updates_total counter
statefulset_enforced_rolling_updates_total{result="completed"} 1
# HELP statefulset_forced_pod_replacements_total Broken pods that were replaced: success when the new one became available, failure when its revision was superseded (KEP-3541).
# TYPE statefulset_forced_pod_replacements_total counter
statefulset_forced_pod_replacements_total{name="web",namespace="shop",result="success"} 1
# HELP statefulset_strategy_distribution How many sets have an update strategy (KEP-3541).
# TYPE statefulset_strategy_distribution gauge
statefulset_strategy_distribution{strategy="EnforcedRollingUpdate"} 1
`, "statefulset_controller_statefulset_max_unavailable", "statefulset_controller_statefulset_unavailable_replicas", "statefulset_enforced_rolling_updates_total",
		"statefulset_forced_pod_replacements_total", "statefulset_strategy_distribution")
	for name, got := range map[string]float64{
		"MT-4 3541-32 ten seconds": sum(t, s.updates.WithLabelValues("EnforcedRollingUpdate").(prometheus.Histogram)) - 10, //nolint:forcetypeassert // one of a HistogramVec
		"MT-4 the recovery":        sum(t, s.recovery) - 10,
		"MT-5 3541-33 an hour":     sum(t, s.stuck) - 3600,
	} {
		if got != 0 {
			t.Errorf("%s: off by %v", name, got)
		}
	}
	s.forget(types.NamespacedName{Namespace: "shop", Name: "web"})
	if n := testutil.CollectAndCount(s.maxUnavailable) + testutil.CollectAndCount(s.unavailable) + testutil.CollectAndCount(s.replacements); n != 0 {
		t.Errorf("MT-9: %d series are left", n)
	}
	if got := testutil.ToFloat64(s.strategies.WithLabelValues("EnforcedRollingUpdate")); got != 0 {
		t.Errorf("MT-6: %v sets are left", got)
	}
}

func TestUpdatesThatDoNotComplete(t *testing.T) {
	for name, end := range map[string]func(*history){
		"superseded":  func(s *history) { s.pass(1, "a", "c") },
		"rolled back": func(s *history) { s.pass(1, "a", "a") },
		"another strategy": func(s *history) {
			s.w.Set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			s.pass(1, "a", "b")
		},
		"the set is gone":      func(s *history) { s.forget(types.NamespacedName{Namespace: "shop", Name: "web"}) },
		"another of that name": func(s *history) { s.w.Set.UID = "other"; s.pass(1, "a", "b") },
	} {
		s := newStory()
		s.pass(0, "a", "b", core.Forced{Pod: "web-2", UID: "old"})
		end(s)
		if got := testutil.ToFloat64(s.enforced.WithLabelValues("failed")); got != 1 {
			t.Errorf("MT-2 3541-31: %s: %v failed", name, got)
		}
		if name == "superseded" && testutil.ToFloat64(s.replacements.WithLabelValues("shop", "web", "failure")) != 1 {
			t.Error("MT-3 3541-30: a replacement for a revision that is superseded has not failed")
		}
	}
}

// A halt counts once, in the pass that finds it (3541-35, 3541-45).
func TestHaltsAreCounted(t *testing.T) {
	s := newStory()
	s.pass(0, "a", "b")
	for range 2 {
		s.observe(s.w, core.Outcome{Halted: true, Status: &core.Status{}})
		s.pass(time.Second, "a", "b")
	}
	s.expect(t, `
# HELP statefulset_safety_halt_total How often EnforcedRollingUpdate came to a halt because the highest ordinal did not become available (KEP-3541).
# TYPE statefulset_safety_halt_total counter
statefulset_safety_halt_total 2
`, "statefulset_safety_halt_total")
}

func TestTheDelayIsThatOfTheFirstEvent(t *testing.T) {
	g, key, now := newGauges(), types.NamespacedName{Name: "web"}, time.Unix(1, 0)
	g.started(key, now) // no event woke it: a retry
	g.woken(key, now)
	g.woken(key, now.Add(time.Second))
	g.started(key, now.Add(3*time.Second))
	if got := sum(t, g.delay); got != 3 {
		t.Errorf("MT-7 3335-54: %v", got)
	}
}

func sum(t *testing.T, h prometheus.Histogram) float64 {
	t.Helper()
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetHistogram().GetSampleSum()
}
