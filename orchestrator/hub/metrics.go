package hub

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are the metrics of a hub.
type gauges struct {
	running  prometheus.Gauge
	inState  *prometheus.GaugeVec
	arrived  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	clusters *prometheus.GaugeVec
	downtime *prometheus.HistogramVec

	lock   sync.Mutex
	states map[string]string // of the plans
}

func newGauges() *gauges {
	return &gauges{
		running:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "stsmigrate_plans_running", Help: "How many plans this process has under way."}),
		inState:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stsmigrate_plan_state", Help: "1 for the state that a plan is in, as `stsmigrate get` shows it."}, []string{"plan", "state"}),
		arrived:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stsmigrate_ordinals_arrived_total", Help: "Ordinals that became available on a side."}, []string{"side"}),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stsmigrate_plan_errors_total", Help: "Errors that are tried again."}, []string{"plan"}),
		clusters: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stsmigrate_clusters", Help: "Clusters that are known from a Secret, and 0 for a Secret that is refused."}, []string{"secret"}),
		downtime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stsmigrate_downtime_seconds", Help: "For how long a wave was on neither side, by the parts of that time.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 14),
		}, []string{"span"}),
		states: map[string]string{},
	}
}

func (g *gauges) register(with prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{g.running, g.inState, g.arrived, g.errors, g.clusters, g.downtime} {
		errs = append(errs, with.Register(c))
	}
	return errors.Join(errs...)
}

func (g *gauges) state(plan, state string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if was, known := g.states[plan]; known && was != state {
		g.inState.DeleteLabelValues(plan, was)
	}
	g.states[plan] = state
	g.inState.WithLabelValues(plan, state).Set(1)
}

func (g *gauges) forget(plan string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	delete(g.states, plan)
	g.inState.DeletePartialMatch(prometheus.Labels{"plan": plan})
	g.errors.DeletePartialMatch(prometheus.Labels{"plan": plan})
}
