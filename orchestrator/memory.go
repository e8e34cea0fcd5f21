package orchestrator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/refusals"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// memory is what a process remembers, by plan. All of it may be lost with the process.
type memory struct {
	Setup

	news chan event.GenericEvent

	// lock guards everything below, and every planState.
	lock   sync.Mutex
	ending bool
	plans  map[string]*planState
	recall recall
	// unseen has the plans that there were at the start and that this process has not read yet; nil before it knows them.
	unseen map[string]bool
	// urgent reports that a plan with ordinals on neither side has no room.
	urgent atomic.Bool
	// reached returns why a cluster cannot be reached, without a request.
	reached func(plans.Ref) error
	// told has what was last reported of the process itself.
	told reported
	// peers has the orchestrators that are alive.
	peers *records.Peers
	// pulse reports whether this process works. It has a lock of its own.
	pulse *pulse
}

// planState is what a process remembers of a plan, from when it first hears of it until neither plan nor object
// exists (forget). The caller of its methods holds the lock of the memory.
type planState struct {
	name string
	// run is nil unless the plan is under way in this process.
	run   *run
	known known
	tries *tries
	// lost reports that the plan waits for a cluster.
	lost bool
	told reported
	// says is what this process has the status of the object say.
	says saying
	// leases has when the Lease of the plan was seen.
	leases records.LeaseSightings
	// waits is not nil while this process has no room for the plan.
	waits *waiter
	// by is who has approved the plan, if admission writes that down.
	by    string
	draft *drafting
	// buried reports that neither a plan nor the journal of an old one was there when they were last read live, and that
	// the watch has told of none since.
	buried bool
}

// topic is what a report of a plan, or of the process, is about.
type topic string

const (
	aboutRun      topic = "run"
	aboutStatus   topic = "status"
	aboutRecord   topic = "record"
	aboutDelivery topic = "delivery"
	aboutReceiver topic = "receiver"
	aboutLife     topic = "sign of life"
)

// reported has the last error that was reported of a topic.
type reported map[topic]string

// isNews reports whether an error differs from the last one, so that an outage is reported once. An empty error forgets
// the last one.
func (t reported) isNews(of topic, err string) bool {
	was := t[of]
	if err == "" {
		delete(t, of)
	} else {
		t[of] = err
	}
	return was != err
}

// state returns what is remembered of a plan, from now on. The caller holds the lock.
func (m *memory) state(name string) *planState {
	s := m.plans[name]
	if s == nil {
		s = &planState{name: name, told: reported{}, leases: records.LeaseSightings{}}
		m.plans[name] = s
	}
	return s
}

// with calls do with what is remembered of a plan, under the lock. It does nothing if that is nothing.
func (m *memory) with(name string, do func(*planState)) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if s := m.plans[name]; s != nil {
		do(s)
	}
}

// forget forgets a plan that does not exist. While its object exists, what the status says and how the next plan is made
// are kept. A run ends first, and its end has the plan forgotten.
func (m *memory) forget(name string, declared bool) {
	m.with(name, func(s *planState) {
		m.waitsNoMore(s)
		s.end()
		m.recall.unlearn(s)
		left := planState{name: name, told: reported{}, leases: records.LeaseSightings{}, run: s.run}
		if declared {
			left.says, left.draft, left.buried = s.says, s.draft, s.buried
		}
		*s = left
		if !declared && s.run == nil {
			delete(m.plans, name)
		}
	})
	m.gauges.forget(name)
	m.Board.Remove(m.Namespace, name)
}

// running returns the runs of this process. The caller holds the lock.
func (m *memory) running() []*run {
	var out []*run
	for _, s := range m.plans {
		if s.run != nil {
			out = append(out, s.run)
		}
	}
	return out
}

// isNews reports whether an error of a plan differs from the last one about the topic. Of a plan that is forgotten, any
// error is news.
func (m *memory) isNews(name string, of topic, err string) bool {
	news := err != ""
	m.with(name, func(s *planState) { news = s.told.isNews(of, err) })
	return news
}

// isNewsOfAll is as isNews, for the process itself.
func (m *memory) isNewsOfAll(of topic, err string) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.told.isNews(of, err)
}

// wake requeues a plan.
func (m *memory) wake(name string) {
	m.news <- event.GenericEvent{Object: &corev1.ConfigMap{ObjectMeta: named(m.Namespace, name)}}
}

// object returns the ConfigMap of a plan, for events about it.
func (m *memory) object(p *plans.Plan) *corev1.ConfigMap {
	o := m.recordOf(p.Name)
	m.with(p.Name, func(s *planState) { o.UID = s.known.uid })
	return o
}

// holder returns which process carries a plan out, or "", and how long that is certain. It compares no two clocks:
// two processes whose clocks differ would otherwise not agree, and each replace the status that the other one writes.
func (m *memory) holder(ctx context.Context, from client.Reader, name string) (string, time.Duration, error) {
	var l coordinationv1.Lease
	if err := from.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: records.LeaseName(name)}, &l); err != nil {
		return "", 0, client.IgnoreNotFound(err)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	holder, left := m.state(name).leases.Holder(&l, m.Dead, m.Now)
	return holder, left, nil
}

// leased returns how long the Lease of a plan keeps this process away; 0 means not at all. The caller
// holds the lock.
func (m *memory) leased(ctx context.Context, name string) time.Duration {
	var l coordinationv1.Lease
	if m.Cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: records.LeaseName(name)}, &l) != nil {
		return 0 // there is no Lease, or the write that takes it fails
	}
	return records.LeaseLeft(&l, m.Holder, m.Dead, m.state(name).leases.Since(&l, m.Now), m.Now())
}

// dead returns a function that reports whether the holder of a plan's Lease is gone: because Dead is
// certain of it, or because this process has watched the Lease expire.
func (m *memory) dead(ctx context.Context, name string) func(holder string) bool {
	return func(holder string) bool {
		if m.Dead(holder) {
			return true
		}
		var l coordinationv1.Lease
		if m.Cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: records.LeaseName(name)}, &l) != nil ||
			l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != holder {
			return false // this process has not watched the present holder yet
		}
		m.lock.Lock()
		defer m.lock.Unlock()
		return m.leased(ctx, name) == 0
	}
}

// end ends the run of the plan, if there is one.
func (s *planState) end() {
	if s.run != nil {
		s.run.end()
	}
}

// startDelayPerPlan is how much every plan under way delays the start of a new one in the same process,
// and maxStartDelay is the longest delay. Among equal processes, the one with the fewest plans begins
// first.
const (
	startDelayPerPlan = 20 * time.Millisecond
	maxStartDelay     = 2 * time.Second
)

// turn returns how long to wait before this process, which has so many runs, may begin the plan.
func (s *planState) turn(now time.Time, runs int) time.Duration {
	if s.tries == nil {
		s.tries = &tries{anew: true}
	}
	t := s.tries
	if t.anew {
		pause := min(time.Duration(runs)*startDelayPerPlan, maxStartDelay)
		spread := now.Add(pause + rand.N(startDelayPerPlan)) //nolint:gosec // it spreads, and hides nothing
		if t.anew = false; t.after.Before(spread) {
			t.after = spread
		}
	}
	return t.after.Sub(now)
}

// tries records when this process may begin a plan.
type tries struct {
	// from is where the plan was when this process last began it.
	from place
	// anew reports that another process had the plan meanwhile: the next start is spread as the first one.
	anew     bool
	failures int
	// overtaken counts the last runs that were overtaken, in a row.
	overtaken int
	refusals  refusals.Counter
	after     time.Time
}

// place is where a plan is. It changes with every progress, and with no takeover.
type place struct {
	leg     plans.Leg
	done    int
	outcome plans.Outcome
}

func placeOf(j *journal.Journal) place { return place{j.Leg, j.Done, j.Outcome} }

// tried returns the tries of the plan.
func (s *planState) tried() *tries {
	if s.tries == nil {
		s.tries = &tries{}
	}
	return s.tries
}

// elsewhere notes that another process has the Lease of a plan. What has failed here still counts, unless
// the plan has got on meanwhile: otherwise two processes that are both refused would forget their pauses and
// refusals in turn, and the plan would never be blocked (L3).
func (s *planState) elsewhere(j *journal.Journal) {
	switch t := s.tries; {
	case t == nil:
	case t.from != placeOf(j):
		s.tries = nil
	default:
		t.anew = true
	}
}

// delay decides when the run after one that has ended may begin.
func (s *planState) delay(now time.Time, err error) {
	switch {
	case err == nil, errors.Is(err, engine.ErrStopped):
		s.tries = nil
	case errors.As(err, new(records.ErrLeaseTaken)), errors.As(err, new(records.ErrLeaseLost)):
		s.tried().anew = true
	case errors.Is(err, errOvertaken) && s.tried().overtaken <= maxOvertaken:
		s.tried().after = now
	default:
		s.failed(now)
	}
}

// failed delays the next try of a plan that could not be begun or continued, longer after every failure, up to the ten
// seconds of L3: an ordinal may be in flight.
func (s *planState) failed(now time.Time) {
	t := s.tried()
	t.after = now.Add(min(time.Second<<min(t.failures, 4), 10*time.Second))
	t.failures++
}

// overtaken counts a run that was overtaken, and returns how many there were in a row.
func (m *memory) overtaken(name string) int {
	m.lock.Lock()
	defer m.lock.Unlock()
	t := m.state(name).tried()
	t.overtaken++
	return t.overtaken
}

// final reports whether a plan that cannot be continued needs the user (L3).
func (m *memory) final(name string, why error) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.state(name).tried().refusals.GiveUp(why, refusals.Rule{Patience: m.StepTimeout, Renewed: true}, m.Now())
}
