package orchestrator

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/orchestrator/notify"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// gauges are the metrics of an Orchestrator.
type gauges struct {
	running, waiting, state, step, ordinals, left, clusters, queue *prometheus.GaugeVec
	errors, panics, notices                                        *prometheus.CounterVec
	downtime                                                       *prometheus.HistogramVec
	places                                                         placeGauges
	done                                                           doneGauges

	lock   sync.Mutex
	states map[string]plans.State // by plan
}

// doneGauges count what is done.
type doneGauges struct {
	arrived, ended *prometheus.CounterVec
}

// placeGauges are those about placeholders.
type placeGauges struct {
	waiting, unreached *prometheus.GaugeVec
	took               *prometheus.HistogramVec
}

// metric describes one metric for users.
type metric struct {
	name   string
	labels []string
	help   string
	as     any // points to where the metric is kept, and its type is that of the metric
}

// list returns all metrics, and is the only place that names them. The registration, the page about
// them, the dashboard and the alerts are made from it or compared with it.
func (g *gauges) list() []metric {
	return []metric{
		{"stsmigrate_plans_running", nil, "Plans that this process has under way.", &g.running},
		{"stsmigrate_plans_waiting", nil, "Plans that this process has no room for (`--max-plans`), and that no other one has taken.", &g.waiting},
		{"stsmigrate_plans_ended_total", []string{"outcome"}, "Plans that this process has brought to their end: `Finalized` or `Aborted`. Plans that have ended have no series of their own.", &g.done.ended},
		{"stsmigrate_plan_state", []string{"plan", "state"}, "1 for the state that a plan is in, as `stsmigrate get` shows it; `Unreadable` for one whose ConfigMaps cannot be read. Absent for one that has ended.", &g.state},
		{"stsmigrate_plan_step", []string{"plan"}, "The last step of a detached plan that is known to be done. It does not change while the plan makes no progress.", &g.step},
		{"stsmigrate_plan_ordinals", []string{"plan", "where"}, "Ordinals of a plan by where they are, as the journal records it: `source`, `destination`, or `neither` for a wave in flight.", &g.ordinals},
		{"stsmigrate_wave_left_timestamp_seconds", []string{"plan"}, "When the wave left that is on neither side; absent while none is.", &g.left},
		{"stsmigrate_ordinals_arrived_total", []string{"side"}, "Ordinals that became available on a side.", &g.done.arrived},
		{
			"stsmigrate_downtime_seconds",
			[]string{"span"},
			"For how long a wave was on neither side: `terminate` (its pods end), `detach` (node and storage let go), `handOver` (claims and volumes), `attach` (scheduled and attached), `ready`.", &g.downtime,
		},
		{"stsmigrate_place_seconds", []string{"proof"}, "How long a placeholder took from its creation until it had proven the place of its ordinal (`schedule`, `warm`), with the ordinal up.", &g.places.took},
		{"stsmigrate_places_waiting", []string{"plan"}, "Ordinals that stay up until their placeholders have their places; absent while no plan waits for that.", &g.places.waiting},
		{"stsmigrate_places_unreached", []string{"plan"}, "Addresses that are not reached from the places of ordinals, which stay up until they are (`reach`); absent while no plan waits for that.", &g.places.unreached},
		{"stsmigrate_plan_errors_total", []string{"plan"}, "Errors that are tried again.", &g.errors},
		{"stsmigrate_panics_total", nil, "Failures of the program itself over a plan, which is blocked. Nothing else is harmed.", &g.panics},
		{"stsmigrate_clusters", []string{"secret"}, "1 for a Secret that holds clusters, 0 for one that is refused.", &g.clusters},
		{"stsmigrate_notifications_total", []string{"result"}, "Notifications that were `delivered`, `rejected` by the receiver, or `dropped` because too many waited; and attempts that failed and are `retried`.", &g.notices},
		{"stsmigrate_notifications_waiting", nil, "Notifications that wait to be sent, in the process that sends them.", &g.queue},
	}
}

// kind returns the type of a metric in Prometheus' words.
func (m metric) kind() string {
	switch m.as.(type) {
	case **prometheus.CounterVec:
		return "counter"
	case **prometheus.HistogramVec:
		return "histogram"
	}
	return "gauge"
}

// collector creates the metric.
func (m metric) collector() prometheus.Collector {
	o := prometheus.Opts{Name: m.name, Help: m.help}
	switch as := m.as.(type) {
	case **prometheus.CounterVec:
		*as = prometheus.NewCounterVec(prometheus.CounterOpts(o), m.labels)
		return *as
	case **prometheus.HistogramVec:
		*as = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: prometheus.ExponentialBuckets(0.05, 2, 14)}, m.labels)
		return *as
	case **prometheus.GaugeVec:
		*as = prometheus.NewGaugeVec(prometheus.GaugeOpts(o), m.labels)
		return *as
	}
	panic("no metric is kept there: " + m.name)
}

// newGauges creates the metrics and registers them.
func newGauges(with prometheus.Registerer) (*gauges, error) {
	g := &gauges{states: map[string]plans.State{}}
	var errs []error
	for _, m := range g.list() {
		errs = append(errs, with.Register(m.collector()))
	}
	g.panics.WithLabelValues().Add(0) // a change from absent to 1 is no increase for Prometheus
	for _, outcome := range []plans.Outcome{plans.Finalized, plans.Aborted} {
		g.done.ended.WithLabelValues(string(outcome)).Add(0)
	}
	g.running.WithLabelValues().Set(0) // present from the start: its absence means that no process runs
	g.waiting.WithLabelValues().Set(0) // present from the start: its absence could hide a lack of room
	for _, r := range notify.Results() {
		g.notices.WithLabelValues(string(r)).Add(0)
	}
	return g, errors.Join(errs...)
}

// plan exports where a plan stands, as its journal records it. me is this process. holder is the process
// that carries the plan out, if any: only the holder sees a wave arrive before the next write of the
// journal. A plan that is over has no metrics.
func (g *gauges) plan(p *plans.Plan, j *journal.Journal, state plans.State, holder, me string) {
	if j.Over() {
		g.forget(p.Name)
		return
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.turned(p.Name, state)
	r := dashboard.New("", p.Name, state, p, j)
	for where, n := range map[string]int32{"source": r.Ordinals - r.Moved - r.InFlight, "neither": r.InFlight, "destination": r.Moved} {
		g.ordinals.WithLabelValues(p.Name, where).Set(float64(n))
	}
	if j.Detached {
		g.step.WithLabelValues(p.Name).Set(float64(j.Done))
	}
	switch holder {
	case me:
	case "":
		g.away(p.Name, j.Left())
	default:
		g.away(p.Name, time.Time{})
	}
}

// turned exports the state of a plan. The caller holds the lock.
func (g *gauges) turned(plan string, state plans.State) {
	if was, known := g.states[plan]; known && was != state {
		g.state.DeleteLabelValues(plan, string(was))
	}
	g.states[plan] = state
	g.state.WithLabelValues(plan, string(state)).Set(1)
}

// turn exports the state of a plan and leaves its other metrics unchanged.
func (g *gauges) turn(plan string, state plans.State) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.turned(plan, state)
}

// stateless removes the state of a plan, which another process exports, and leaves its other metrics
// unchanged.
func (g *gauges) stateless(plan string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	delete(g.states, plan)
	g.state.DeletePartialMatch(prometheus.Labels{"plan": plan})
}

// waits exports how many ordinals stay up until their placeholders have their places, and how many addresses are not reached
// from there; 0 means that none does, and that none is.
func (g *gauges) waits(plan string, ordinals int32, unreached int) {
	for gauge, n := range map[*prometheus.GaugeVec]float64{g.places.waiting: float64(ordinals), g.places.unreached: float64(unreached)} {
		if n == 0 {
			gauge.DeleteLabelValues(plan)
		} else {
			gauge.WithLabelValues(plan).Set(n)
		}
	}
}

// away exports since when a wave has been on neither side; the zero time means that none is.
func (g *gauges) away(plan string, since time.Time) {
	if since.IsZero() {
		g.left.DeleteLabelValues(plan)
	} else {
		g.left.WithLabelValues(plan).Set(float64(since.UnixMilli()) / 1000)
	}
}

func (g *gauges) forget(plan string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	delete(g.states, plan)
	of := prometheus.Labels{"plan": plan}
	g.state.DeletePartialMatch(of)
	g.errors.DeletePartialMatch(of)
	g.step.DeletePartialMatch(of)
	g.ordinals.DeletePartialMatch(of)
	g.left.DeletePartialMatch(of)
	g.waits(plan, 0, 0)
}
