package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// needs has the sides whose clusters must be reached.
	needs []plans.Side
	since time.Time
	lack  lack
	told  lack // what was reported last
}

// hasRoom reports whether a plan may begin in this process. Otherwise the plan waits here, and any other
// process may take it meanwhile. The caller holds the lock.
func (m *memory) hasRoom(s *planState, u urgency, needs []plans.Side) bool {
	switch {
	case s.waits == nil:
		s.waits = &waiter{since: m.Now(), urgency: u, needs: needs, lack: undecided}
		m.divide()
	case s.waits.urgency != u || !slices.Equal(s.waits.needs, needs):
		s.waits.urgency, s.waits.needs = u, needs
		m.divide()
	}
	if s.waits.lack != lacksNothing {
		return false
	}
	s.waits = nil // the place stays its own: its run begins under the same lock
	return true
}

// needs returns the sides whose clusters a run for a plan must reach. Nothing of a plan that was not begun is in them when
// it is aborted.
func needs(j *journal.Journal, what action, command plans.Command) []plans.Side {
	switch {
	case what == carry && command.Direction == plans.Abort && j.Epoch == 0:
		return nil
	case command.Assurance.SourceGone || j.Assurances.SourceGone:
		return []plans.Side{plans.Destination}
	}
	return plans.Sides()
}

// divide divides the room among the plans: it ends runs that make room, and requeues the plans that may begin now. It is
// called after every change of what room.divide is told of. The caller holds the lock.
func (m *memory) divide() {
	v := m.room().divide()
	for _, name := range v.ends {
		m.plans[name].run.giveWay(m.plans[name].cutOff(m.reached) != nil)
	}
	lacking, urgent := 0, false
	var called []string
	for _, s := range m.waiting() {
		before, now := s.waits.lack, v.lacks[s.name]
		if s.waits.lack = now; before != undecided && before != now && (now == lacksNothing || now.isTold()) {
			called = append(called, s.name)
		}
		if now == lacksRoom {
			lacking++
			urgent = urgent || s.waits.urgency == inFlight
		}
	}
	m.gauges.waiting.WithLabelValues().Set(float64(lacking))
	m.urgent.Store(urgent)
	if len(called) > 0 && !m.ending {
		go func() { // the names may be more than the channel holds
			for _, name := range called {
				m.wake(name)
			}
		}()
	}
}

// room returns what this process knows of its room now. The caller holds the lock.
func (m *memory) room() room {
	r := room{limit: m.MaxPlans, read: m.unseen != nil && len(m.unseen) == 0}
	said := map[plans.Ref]error{} // many plans have few clusters
	reached := func(of plans.Ref) error {
		of.Namespace, of.Name = "", ""
		err, known := said[of]
		if !known {
			err = m.reached(of)
			said[of] = err
		}
		return err
	}
	for _, s := range m.plans {
		if s.run == nil && s.waits == nil {
			continue
		}
		of := seat{name: s.name, by: s.by, silent: s.cutOff(reached) != nil}
		if p := s.known.plan; p != nil {
			of.pair, of.named = m.pair(p), len(p.Directories()) > 0
		}
		if s.run != nil {
			of.stage, of.ends = s.run.stage(), s.run.stopped() || s.run.displaced && s.run.finishes(of.silent)
		} else {
			of.urgency, of.since = s.waits.urgency, s.waits.since
		}
		r.seats = append(r.seats, of)
	}
	return r
}

// pair returns the clusters of a plan by the names under which the process knows them.
func (m *memory) pair(p *plans.Plan) pair {
	return pair{m.Fleet.Known(p.Source.Context, p.Source.Cluster), m.Fleet.Known(p.Destination.Context, p.Destination.Cluster)}
}

// cutOff returns why a cluster of the plan cannot be reached.
func (s *planState) cutOff(reached func(plans.Ref) error) error {
	p := s.known.plan
	if p == nil {
		return nil
	}
	needs := plans.Sides()
	switch {
	case s.run != nil && s.run.gone:
		needs = []plans.Side{plans.Destination}
	case s.waits != nil:
		needs = s.waits.needs
	}
	for _, side := range needs {
		if err := reached(p.On(side)); err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
	}
	return nil
}

// again divides the room after something has changed: a cluster has begun or ceased to answer, or a run does something else.
func (m *memory) again() {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.divide()
}

// waitsNoMore forgets that a plan waits, which may let others begin. The caller holds the lock.
func (m *memory) waitsNoMore(s *planState) {
	if s.waits != nil {
		s.waits = nil
		m.divide()
	}
}

// census notes, once, which plans there are. Until each of them was read once, only plans with ordinals on neither side
// begin: the first ones that a new process reads are not the most urgent.
func (m *memory) census(ctx context.Context) error {
	m.lock.Lock()
	known := m.unseen != nil
	m.lock.Unlock()
	if known {
		return nil
	}
	all := &corev1.ConfigMapList{}
	if err := m.Cached.List(ctx, all, client.InNamespace(m.Namespace), client.HasLabels{plans.PlanLabel}); err != nil {
		return fmt.Errorf("listing the plans of namespace %s: %w", m.Namespace, err)
	}
	unseen := map[string]bool{}
	for k := range all.Items {
		unseen[all.Items[k].Labels[plans.PlanLabel]] = true
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.unseen == nil {
		m.unseen = unseen
	}
	return nil
}

// seen notes that a plan was read, or cannot be read. After the last one the room is divided. The caller holds the lock.
func (m *memory) seen(name string) {
	if !m.unseen[name] {
		return
	}
	if delete(m.unseen, name); len(m.unseen) == 0 {
		m.divide()
	}
}

// saw is as seen, for who does not hold the lock.
func (m *memory) saw(name string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.seen(name)
}

// crowded reports, once, what a plan waits for that does not begin here. It returns when to reconcile the plan for
// that purpose, and before unchanged for a plan that does not wait. It does not report at once, because
// another process may be about to take the plan.
func (m *memory) crowded(ctx context.Context, p *plans.Plan, j *journal.Journal, before time.Duration) (time.Duration, error) {
	m.lock.Lock()
	s := m.state(p.Name)
	w := s.waits
	if w == nil || !w.lack.isTold() || w.told == w.lack || before > 0 {
		m.lock.Unlock()
		return before, nil
	}
	id, why := m.wants(s)
	if left := mirrorRetryInterval - m.Now().Sub(w.since); left > 0 && id != reasons.ClusterUnknown { // that needs the user
		m.lock.Unlock()
		return left, nil
	}
	w.told = w.lack
	keeps := w.urgency == kept
	m.lock.Unlock()
	if id == reasons.WaitsForRoom {
		m.Events.Event(m.object(p), corev1.EventTypeNormal, string(reasons.WaitsForRoom), why)
	} else if m.isNews(p.Name, aboutRun, why) {
		m.Events.Event(m.object(p), corev1.EventTypeWarning, tryingAgain, why)
	}
	if keeps || j.Waiting == why {
		return 0, nil
	}
	return 0, records.NewStore(m.Live, m.Namespace, p.Name).Change(ctx, p, func(now *journal.Journal) error {
		if now.Epoch == j.Epoch { // no process has taken it over meanwhile
			now.WaitingID, now.Waiting = id, why
		}
		return nil
	})
}

// wants returns in words what a plan waits for that does not begin here. It names no clusters and no users but those of
// the plan: its readers may know of no others. The caller holds the lock.
func (m *memory) wants(s *planState) (reasons.ID, string) {
	if err := s.cutOff(m.reached); err != nil {
		return cmp.Or(reasons.Of(err), reasons.ClusterNotReached), records.Brief(err.Error())
	}
	r := m.room()
	own, all, moved := 0, 0, 0
	for _, of := range r.seats {
		if of.stage == waits {
			continue
		}
		all++
		if p := s.known.plan; p != nil && of.pair == m.pair(p) {
			own++
		}
		if of.stage == keeping {
			moved++
		}
	}
	return reasons.WaitsForRoom, fmt.Sprintf("it waits for room: %d plans is the limit of an orchestrator (--max-plans), %d of them only while ordinals are on neither side, and no other orchestrator has taken this plan. "+
		"Of the %d plans that have room in %s now, %d are between the clusters of this plan, %d between others, and %d of all have moved and only keep names. It continues by itself. "+
		"More replicas or more memory make room, and so does finalizing plans that have moved", m.MaxPlans, reserve(m.MaxPlans), all, m.Holder, own, all-own, moved)
}
