package slicecontroller

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// gauges are the metrics of the controller itself. controller-runtime adds those of its queue and its
// requests. The metric names are those of the KEPs.
type gauges struct {
	maxUnavailable, unavailable, strategies *prometheus.GaugeVec
	enforced, replacements, skips           *prometheus.CounterVec
	halts                                   prometheus.Counter
	updates                                 *prometheus.HistogramVec
	stuck, recovery, delay                  prometheus.Histogram

	lock   sync.Mutex
	sets   map[types.NamespacedName]*rollout
	queued map[types.NamespacedName]time.Time
}

// rollout is the state from which the metrics of a set are computed.
type rollout struct {
	uid      types.UID
	strategy appsv1.StatefulSetUpdateStrategyType
	// updating is the target revision of the running update, "" if none runs. since is when
	// that update was first observed.
	updating string
	since    time.Time
	forced   map[string]forced // by pod name
}

// forced is a pod that was replaced because it was broken, and the revision it was replaced for.
type forced struct {
	was     types.UID
	towards string
}

// minutes returns the histogram buckets, in seconds, for durations from seconds to hours.
func minutes() []float64 { return prometheus.ExponentialBuckets(1, 2.5, 11) }

func newGauges() *gauges {
	of := []string{"statefulset_namespace", "statefulset_name", "pod_management_policy"}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	return &gauges{
		maxUnavailable: gauge("statefulset_controller_statefulset_max_unavailable", "How many pods an update may take down at once, as a number of pods (KEP-961).", of...),
		unavailable:    gauge("statefulset_controller_statefulset_unavailable_replicas", "How many ordinals of the range have no available pod.", of...),
		strategies:     gauge("statefulset_strategy_distribution", "How many sets have an update strategy (KEP-3541).", "strategy"),
		enforced:       counter("statefulset_enforced_rolling_updates_total", "Updates by EnforcedRollingUpdate that completed, or failed: were superseded, or ended with their set or its strategy (KEP-3541).", "result"),
		replacements:   counter("statefulset_forced_pod_replacements_total", "Broken pods that were replaced: success when the new one became available, failure when its revision was superseded (KEP-3541).", "namespace", "name", "result"),
		skips:          counter("statefulset_controller_stale_sync_skips_total", "How often a pass was put off because the cache lacked a write of this process, by what was written.", "group", "resource"),
		halts:          prometheus.NewCounter(prometheus.CounterOpts{Name: "statefulset_safety_halt_total", Help: "How often EnforcedRollingUpdate came to a halt because the highest ordinal did not become available (KEP-3541)."}),
		updates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statefulset_update_duration_seconds", Help: "From the first pass that saw an update to its completion (KEP-3541).", Buckets: minutes(),
		}, []string{"strategy"}),
		stuck:    histogram("statefulset_stuck_pod_duration_seconds", "For how long a pod was not ready when it was replaced by force (KEP-3541).", minutes()),
		recovery: histogram("statefulset_forced_replacement_duration_seconds", "From the creation of a revision to the availability of a pod that was replaced by force for it.", minutes()),
		delay:    histogram("statefulset_reconcile_delay", "Seconds from the event that woke a set to the start of its pass (KEP-3335).", prometheus.ExponentialBuckets(0.001, 4, 8)),
		sets:     map[types.NamespacedName]*rollout{}, queued: map[types.NamespacedName]time.Time{},
	}
}

// collectors returns the metrics in the order of their page.
func (g *gauges) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		g.maxUnavailable, g.unavailable, g.strategies, g.enforced, g.replacements, g.skips, g.halts, g.updates, g.stuck, g.recovery, g.delay,
	}
}

// register registers the metrics.
func (g *gauges) register(with prometheus.Registerer) error {
	var errs []error
	for _, c := range g.collectors() {
		errs = append(errs, with.Register(c))
	}
	return errors.Join(errs...)
}

// woken records when a set was first enqueued, and started observes how long ago that was (MT-7).
func (g *gauges) woken(set types.NamespacedName, now time.Time) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if _, waits := g.queued[set]; !waits {
		g.queued[set] = now
	}
}

func (g *gauges) started(set types.NamespacedName, now time.Time) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if since, waits := g.queued[set]; waits {
		g.delay.Observe(now.Sub(since).Seconds())
		delete(g.queued, set)
	}
}

// observe records the result of a pass, including a pass that could do nothing (MT-1).
func (g *gauges) observe(w core.World, o core.Outcome) {
	if o.Status == nil {
		return
	}
	set := w.Set
	of := []string{set.Namespace, set.Name, string(set.Spec.PodManagementPolicy)}
	g.maxUnavailable.WithLabelValues(of...).Set(float64(o.MaxUnavailable))
	g.unavailable.WithLabelValues(of...).Set(float64(o.Unavailable))
	if o.Halted {
		g.halts.Inc()
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	key := types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
	r := g.sets[key]
	if r != nil && r.uid != set.UID {
		g.end(key)
		r = nil
	}
	if r == nil {
		r = &rollout{uid: set.UID, forced: map[string]forced{}}
		g.sets[key] = r
	}
	g.follow(r, w, o)
	g.replaced(r, w, o)
}

// follow tracks the strategy of a set and its update (MT-2, MT-4, MT-6).
func (g *gauges) follow(r *rollout, w core.World, o core.Outcome) {
	strategy, target := w.Set.Spec.UpdateStrategy.Type, o.Status.UpdateRevision
	if r.strategy != strategy {
		g.leave(r)
		g.strategies.WithLabelValues(string(strategy)).Inc()
		r.strategy = strategy
	}
	switch updating := o.Status.CurrentRevision != target; {
	case updating && r.updating == target:
	case updating:
		g.fail(r)
		r.updating, r.since = target, w.Now
	case r.updating == target:
		g.updates.WithLabelValues(string(strategy)).Observe(w.Now.Sub(r.since).Seconds())
		if strategy == core.EnforcedRollingUpdate {
			g.enforced.WithLabelValues("completed").Inc()
		}
		r.updating = ""
	default:
		g.fail(r)
	}
}

// fail ends an update that has not completed.
func (g *gauges) fail(r *rollout) {
	if r.updating != "" && r.strategy == core.EnforcedRollingUpdate {
		g.enforced.WithLabelValues("failed").Inc()
	}
	r.updating = ""
}

// leave ends the update and the strategy of a set.
func (g *gauges) leave(r *rollout) {
	g.fail(r)
	if r.strategy != "" {
		g.strategies.WithLabelValues(string(r.strategy)).Dec()
	}
}

// replaced tracks the pods that were replaced by force (MT-3, MT-5).
func (g *gauges) replaced(r *rollout, w core.World, o core.Outcome) {
	target := o.Status.UpdateRevision
	result := func(words string) prometheus.Counter {
		return g.replacements.WithLabelValues(w.Set.Namespace, w.Set.Name, words)
	}
	for _, p := range w.Pods {
		f, was := r.forced[p.Name]
		if was && f.towards == target && p.UID != f.was && w.Set.Available(p, w.Now) {
			result("success").Inc()
			for _, rev := range w.Revisions {
				if rev.Name == target {
					g.recovery.Observe(w.Now.Sub(rev.CreationTimestamp.Time).Seconds())
				}
			}
			delete(r.forced, p.Name)
		}
	}
	for pod, f := range r.forced {
		if f.towards != target {
			result("failure").Inc()
			delete(r.forced, pod)
		}
	}
	for _, f := range o.Forced {
		g.stuck.Observe(f.Stuck.Seconds())
		r.forced[f.Pod] = forced{was: f.UID, towards: target}
	}
}

// forget deletes the series of a set (MT-9).
func (g *gauges) forget(set types.NamespacedName) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.end(set)
	delete(g.queued, set)
}

func (g *gauges) end(set types.NamespacedName) {
	if r := g.sets[set]; r != nil {
		g.leave(r)
		delete(g.sets, set)
	}
	of := prometheus.Labels{"statefulset_namespace": set.Namespace, "statefulset_name": set.Name}
	g.maxUnavailable.DeletePartialMatch(of)
	g.unavailable.DeletePartialMatch(of)
	g.replacements.DeletePartialMatch(prometheus.Labels{"namespace": set.Namespace, "name": set.Name})
}
