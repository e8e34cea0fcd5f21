package engine

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
)

// WaveLimiter let waves of many plans begin, so many per cluster at once. An ordinal is down while the
// controllers of its clusters handle its claim and its pod, and they handle one after the other: of
// waves that go together each waits for all. What waits for a slot is still up. Anything else that
// goes sooner one after the other can have a WaveLimiter of its own.
//
// No promise rests on it: budgets and looks keep S3, whoever is let through.
type WaveLimiter struct {
	perCluster int
	lock       sync.Mutex
	taken      map[types.UID]int
	made       int
	waiting    []*Permit // by number: a plan that has begun is finished before others are half done
}

// NewWaveLimiter returns slots for perCluster waves in each cluster; 0 is for any number.
func NewWaveLimiter(perCluster int) *WaveLimiter {
	return &WaveLimiter{perCluster: perCluster, taken: map[types.UID]int{}}
}

// Permit is that of a plan: a seat in each of its clusters. A nil Permit is always taken. It is not
// safe for concurrent use.
type Permit struct {
	of       *WaveLimiter
	number   int
	clusters map[plans.Side]*clusterPermit // the same one twice, if both sides are in one cluster
	free     chan struct{}
}

// clusterPermit is one among those of a cluster. It is kept while the controllers of that cluster are waited
// for, and while they are not for as long as idling is: whoever waits for a node, a disk, the
// application, the other cluster or for an answer leaves the controllers to others.
type clusterPermit struct {
	cluster types.UID
	taken   bool
	idle    *time.Timer // nil while it is not idle
}

const idleGrace = 30 * time.Second

// waitsForPermit is why a wave that could begin does not.
const waitsForPermit = "the wave begins as soon as fewer than --cluster-waves of the orchestrator are under way in its clusters"

// Of gives the slot of a plan, which is not taken. Those that wait are let in in the order in which
// they were given.
func (s *WaveLimiter) Of(p *plans.Plan) *Permit {
	if s == nil || s.perCluster == 0 {
		return nil
	}
	from := &clusterPermit{cluster: p.Source.Cluster}
	to := from
	if !p.OneCluster() {
		to = &clusterPermit{cluster: p.Destination.Cluster}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.made++
	return &Permit{of: s, number: s.made, clusters: map[plans.Side]*clusterPermit{plans.Source: from, plans.Destination: to}, free: make(chan struct{}, 1)}
}

// Acquire takes the slot for a wave that is about to begin, or says that it has to wait until Free
// has a value.
func (t *Permit) Acquire() bool {
	if t == nil {
		return true
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	if t.has() {
		return true
	}
	t.release()
	place, _ := slices.BinarySearchFunc(t.of.waiting, t, func(a, b *Permit) int { return a.number - b.number })
	t.of.waiting = slices.Insert(t.of.waiting, place, t)
	t.of.admit()
	if t.has() {
		select {
		case <-t.free: // it has not been waited for; and one of an earlier time is no news
		default:
		}
	}
	return t.has()
}

// Free has a value when a slot that was waited for has been taken.
func (t *Permit) Free() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.free
}

// Wait takes the slot as soon as it can be taken; false says that stop was closed before. Leave gives
// it back in either case.
func (t *Permit) Wait(stop <-chan struct{}) bool {
	if t.Acquire() {
		return true
	}
	select {
	case <-t.Free():
		return true
	case <-stop:
		return false
	}
}

// Retain takes what a wave that is under way needs, which waits for nobody. busy is the side whose
// controllers it waits for, or none.
func (t *Permit) Retain(busy plans.Side) {
	if t == nil {
		return
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	t.of.waiting = slices.DeleteFunc(t.of.waiting, t.is)
	for _, s := range t.clusters {
		if s == t.clusters[busy] {
			s.stay()
			t.of.take(s)
		} else {
			t.of.idle(s)
		}
	}
}

// Release gives the slot back, and the place among those that wait for one.
func (t *Permit) Release() {
	if t == nil {
		return
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	t.release()
	t.of.admit()
}

// permitted says whether a wave may begin, or go on. One whose budgets are tight waits for nobody;
// neither does what moves nothing.
func (e *Engine) permitted(step plans.Step) bool {
	return !begins(e.journal, step) || e.Permit.Acquire()
}

// begins says whether the step is the first of a wave, and leaves both budgets as they were so far.
func begins(j *plans.Journal, step plans.Step) bool {
	return step.Op == plans.Tighten && j.TightSince == nil
}

// retainPermit tells the slot what the wave waits for now.
func (e *Engine) retainPermit(step plans.Step, observed plans.Observation, err error) {
	waits := err != nil || observed.Standing == plans.During
	switch {
	case !step.Moves():
	case waits && begins(e.journal, step):
		e.Permit.Release() // others go first
	case err != nil, waits && (observed.Idle || step.Op.Gated()):
		e.Permit.Retain("")
	case step.Op.Arrives():
		e.Permit.Retain(step.To())
	default:
		e.Permit.Retain(step.From)
	}
}

// From here on the lock is held.

// admit lets those in for whom there is room in both clusters. Who waits for a full cluster does
// not keep others from another one.
func (s *WaveLimiter) admit() {
	s.waiting = slices.DeleteFunc(s.waiting, func(t *Permit) bool {
		for _, seat := range t.clusters {
			if s.taken[seat.cluster] >= s.perCluster {
				return false
			}
		}
		for _, seat := range t.clusters {
			s.take(seat)
			s.idle(seat)
		}
		select {
		case t.free <- struct{}{}:
		default:
		}
		return true
	})
}

func (s *WaveLimiter) take(seat *clusterPermit) {
	if !seat.taken {
		seat.taken = true
		s.taken[seat.cluster]++
	}
}

func (s *WaveLimiter) giveBack(seat *clusterPermit) {
	seat.stay()
	if !seat.taken {
		return
	}
	seat.taken = false
	if s.taken[seat.cluster]--; s.taken[seat.cluster] == 0 {
		delete(s.taken, seat.cluster)
	}
}

// idle lets a seat be given back after a while.
func (s *WaveLimiter) idle(seat *clusterPermit) {
	if !seat.taken || seat.idle != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(idleGrace, func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		if seat.idle == timer {
			s.giveBack(seat)
			s.admit()
		}
	})
	seat.idle = timer
}

func (s *clusterPermit) stay() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
}

func (t *Permit) is(o *Permit) bool { return o == t }

func (t *Permit) has() bool {
	return t.clusters[plans.Source].taken && t.clusters[plans.Destination].taken
}

func (t *Permit) release() {
	t.of.waiting = slices.DeleteFunc(t.of.waiting, t.is)
	for _, s := range t.clusters {
		t.of.giveBack(s)
	}
}
