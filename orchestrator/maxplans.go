package orchestrator

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// These are the memory of a process, and what each plan under way adds to it: the measurements of the
// largest storm (docs/results/storm.md), rounded up. keptBytes is what the process keeps of the objects of its namespace:
// plans that were read (mostKnown), and what identifies as many objects as the quota of the chart allows.
const (
	processBytes = 64 << 20
	planBytes    = 3 << 19
	keptBytes    = mostKnown + 28<<20
)

// PlansWithin returns how many plans fit into a memory limit in bytes; 0 means any number, because
// nothing limits the memory. More plans would end this process, then the process that takes them over,
// and so on.
func PlansWithin(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max((limit-processBytes-keptBytes)/planBytes, 1))
}

// urgency is the order in which plans get the room of a process.
type urgency int

const (
	inFlight urgency = iota // ordinals are on neither side
	begun
	kept // only names and drains, or a look at what blocks it: without a run, a restarting pod has no name
	unbegun
)

func urgencyOf(p *plans.Plan, j *journal.Journal, what action) urgency {
	switch {
	case what == keep, j.LooksOn():
		return kept
	case j.Down(p):
		return inFlight
	case j.Epoch > 0:
		return begun
	}
	return unbegun
}

// waiting returns the plans for which this process has no room. The caller holds the lock.
func (m *memory) waiting() []*planState {
	var out []*planState
	for _, s := range m.plans {
		if s.waits != nil {
			out = append(out, s)
		}
	}
	return out
}

// waiter is a plan that waits for room in this process.
type waiter struct {
	urgency urgency
	since   time.Time
	told    bool
}

// hasRoom reports whether a plan may begin in this process. Otherwise the plan waits here, and any other
// process may take it meanwhile. The caller holds the lock.
func (m *memory) hasRoom(s *planState, u urgency) bool {
	before := 0
	for _, other := range m.waiting() {
		if other != s && other.waits.urgency < u {
			before++
		}
	}
	if m.MaxPlans == 0 || len(m.running())+before < m.MaxPlans {
		m.waitsNoMore(s)
		return true
	}
	if s.waits == nil {
		s.waits = &waiter{since: m.Now()}
		m.gauges.waiting.WithLabelValues().Set(float64(len(m.waiting())))
	}
	s.waits.urgency = u
	m.makeRoom()
	return false
}

// makeRoom ends runs that only keep names, or look on over a blocked plan: one for each waiting plan with ordinals on neither side. The
// caller holds the lock.
func (m *memory) makeRoom() {
	wanted := 0
	for _, s := range m.waiting() {
		if s.waits.urgency == inFlight {
			wanted++
		}
	}
	for _, r := range m.running() {
		if r.displaced {
			wanted--
		}
	}
	for _, r := range m.running() {
		if wanted > 0 && (r.what == keep || r.looksOn.Load()) && !r.displaced {
			r.displaced = true
			r.end()
			wanted--
		}
	}
}

// waitsNoMore forgets that a plan waits, which may let others begin. The caller holds the lock.
func (m *memory) waitsNoMore(s *planState) {
	if s.waits != nil {
		s.waits = nil
		m.gauges.waiting.WithLabelValues().Set(float64(len(m.waiting())))
		m.freed()
	}
}

// freed requeues all plans that wait for room; their urgency decides which one gets it. The caller holds
// the lock.
func (m *memory) freed() {
	waiting := m.waiting()
	if len(waiting) == 0 || m.ending {
		return
	}
	var names []string
	for _, s := range waiting {
		names = append(names, s.name)
	}
	go func() { // the names may be more than the channel holds
		for _, name := range names {
			m.wake(name)
		}
	}()
}

// crowded reports, once, a plan that no process has room for. It returns when to reconcile the plan for
// that purpose, and before unchanged for a plan that does not wait. It does not report at once, because
// another process may be about to take the plan.
func (m *memory) crowded(ctx context.Context, p *plans.Plan, j *journal.Journal, before time.Duration) (time.Duration, error) {
	m.lock.Lock()
	w := m.state(p.Name).waits
	if w == nil || w.told || before > 0 {
		m.lock.Unlock()
		return before, nil
	}
	if left := mirrorRetryInterval - m.Now().Sub(w.since); left > 0 {
		m.lock.Unlock()
		return left, nil
	}
	w.told = true
	keeps := w.urgency == kept
	m.lock.Unlock()
	why := fmt.Sprintf("it waits for room: %d plans is the limit of an orchestrator (--max-plans), and no other orchestrator has taken this plan; it continues by itself. "+
		"More replicas or more memory make room, and so does finalizing plans that have moved", m.MaxPlans)
	m.Events.Event(m.object(p), corev1.EventTypeNormal, string(reasons.WaitsForRoom), why)
	if keeps || j.Waiting == why {
		return 0, nil
	}
	return 0, records.NewStore(m.Live, m.Namespace, p.Name).Change(ctx, p, func(now *journal.Journal) error {
		if now.Epoch == j.Epoch { // no process has taken it over meanwhile
			now.WaitingID, now.Waiting = reasons.WaitsForRoom, why
		}
		return nil
	})
}
