// Package wavelimit limits how many waves of many plans run at once in each cluster. No safety rule depends on it.
package wavelimit

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Limiter limits how many waves of many plans run at once per cluster. An ordinal is down while the
// controllers of its clusters handle its claim and its pod, one after the other: waves that go together wait
// for each other. A wave that waits for a permit is still up. Other work that is faster one after the other
// can have its own Limiter.
//
// No safety rule depends on it: budgets and looks keep S3, whichever wave is admitted.
type Limiter struct {
	perCluster int
	lock       sync.Mutex
	taken      map[types.UID]int
	made       int
	waiting    []*Permit
}

// New returns a limiter for perCluster waves in each cluster; 0 means no limit.
func New(perCluster int) *Limiter {
	return &Limiter{perCluster: perCluster, taken: map[types.UID]int{}}
}

// Permit is the permit of one plan: a seat in each of its clusters. A nil Permit is always granted. It is
// not safe for concurrent use.
type Permit struct {
	of       *Limiter
	number   int
	clusters map[plans.Side]*clusterPermit // the same one twice, if both sides are in one cluster
	free     chan struct{}
}

// clusterPermit is a seat in one cluster. A wave keeps it while it waits for the controllers of that cluster,
// and for idleGrace after that. A wave that waits for a node, a disk, the application, the other cluster or
// an answer leaves the controllers to other waves.
type clusterPermit struct {
	cluster types.UID
	taken   bool
	idle    *time.Timer // nil while it is not idle
}

const idleGrace = 30 * time.Second

// Of returns the permit of a plan, not yet granted; nil if there is no limit. Waiting permits are granted in
// the order in which Of returned them.
func (s *Limiter) Of(p *plans.Plan) *Permit {
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

// Acquire takes the permit for a wave that is about to begin. It reports false if the wave must
// wait until Free has a value.
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
		case <-t.free: // no wait took place; a value from an earlier wait is obsolete
		default:
		}
	}
	return t.has()
}

// GivesWay reports whether the next wave of the plan has to ask for the permit again: another plan waits, and would have
// it first, or this one has given back a seat.
func (t *Permit) GivesWay() bool {
	if t == nil {
		return false
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	return slices.ContainsFunc(t.of.waiting, func(o *Permit) bool { return !t.has() || o.number < t.number && o.hasRoom(t) })
}

// Free has a value when a permit that was waited for has been granted.
func (t *Permit) Free() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.free
}

// Wait takes the permit as soon as it is granted. It reports false if stop was closed before. Release gives
// the permit back in either case.
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

// Retain takes the seats that a wave under way needs, without a wait. busy is the side whose controllers
// the wave waits for, or "".
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

// Release gives the permit back, and its place in the queue.
func (t *Permit) Release() {
	if t == nil {
		return
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	t.release()
	t.of.admit()
}

// The functions below require the lock.

// admit grants the permits for which both clusters have room. A wave that waits for a full cluster does not
// keep other waves out of another cluster.
func (s *Limiter) admit() {
	s.waiting = slices.DeleteFunc(s.waiting, func(t *Permit) bool {
		if !t.hasRoom(nil) {
			return false
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

// hasRoom reports whether both clusters have room, once another permit, if any, is given back.
func (t *Permit) hasRoom(without *Permit) bool {
	for _, seat := range t.clusters {
		if t.of.taken[seat.cluster]-without.takes(seat.cluster) >= t.of.perCluster {
			return false
		}
	}
	return true
}

// takes returns how many seats of a cluster the permit has. The plan of one cluster has one there, for both sides.
func (t *Permit) takes(cluster types.UID) int {
	if t == nil {
		return 0
	}
	for _, seat := range t.clusters {
		if seat.taken && seat.cluster == cluster {
			return 1
		}
	}
	return 0
}

func (s *Limiter) take(seat *clusterPermit) {
	if !seat.taken {
		seat.taken = true
		s.taken[seat.cluster]++
	}
}

func (s *Limiter) giveBack(seat *clusterPermit) {
	seat.stay()
	if !seat.taken {
		return
	}
	seat.taken = false
	if s.taken[seat.cluster]--; s.taken[seat.cluster] == 0 {
		delete(s.taken, seat.cluster)
	}
}

// idle gives a seat back after idleGrace.
func (s *Limiter) idle(seat *clusterPermit) {
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

// Busy reports whether the permit has its seat on a side for the controllers there.
func (t *Permit) Busy(side plans.Side) bool {
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	return t.clusters[side].taken && t.clusters[side].idle == nil
}

// Has reports whether the permit has its seat on a side.
func (t *Permit) Has(side plans.Side) bool {
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	return t.clusters[side].taken
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
