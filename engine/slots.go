package engine

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Slots let waves of many plans begin, so many per cluster at once. An ordinal is down while the
// controllers of its clusters handle its claim and its pod, and they handle one after the other: of
// waves that go together each waits for all. What waits for a slot is still up. Anything else that
// goes sooner one after the other can have Slots of its own.
//
// No promise rests on it: budgets and looks keep S3, whoever is let through.
type Slots struct {
	perCluster int
	lock       sync.Mutex
	taken      map[types.UID]int
	made       int
	waiting    []*Slot // by number: a plan that has begun is finished before others are half done
}

// NewSlots returns slots for perCluster waves in each cluster; 0 is for any number.
func NewSlots(perCluster int) *Slots {
	return &Slots{perCluster: perCluster, taken: map[types.UID]int{}}
}

// Slot is that of a plan: a seat in each of its clusters. A nil Slot is always taken. It is not
// safe for concurrent use.
type Slot struct {
	of     *Slots
	number int
	seats  map[plans.Side]*seat // the same one twice, if both sides are in one cluster
	free   chan struct{}
}

// seat is one among those of a cluster. It is kept while the controllers of that cluster are waited
// for, and while they are not for as long as idling is: whoever waits for a node, a disk, the
// application, the other cluster or for an answer leaves the controllers to others.
type seat struct {
	cluster types.UID
	taken   bool
	idle    *time.Timer // nil while it is not idle
}

const idling = 30 * time.Second

// queued is why a wave that could begin does not.
const queued = "the wave begins as soon as fewer than --cluster-waves of the orchestrator are under way in its clusters"

// Of gives the slot of a plan, which is not taken. Those that wait are let in in the order in which
// they were given.
func (s *Slots) Of(p *plans.Plan) *Slot {
	if s == nil || s.perCluster == 0 {
		return nil
	}
	from := &seat{cluster: p.Source.Cluster}
	to := from
	if !p.OneCluster() {
		to = &seat{cluster: p.Destination.Cluster}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.made++
	return &Slot{of: s, number: s.made, seats: map[plans.Side]*seat{plans.Source: from, plans.Destination: to}, free: make(chan struct{}, 1)}
}

// Take takes the slot for a wave that is about to begin, or says that it has to wait until Free
// has a value.
func (t *Slot) Take() bool {
	if t == nil {
		return true
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	if t.has() {
		return true
	}
	t.leave()
	place, _ := slices.BinarySearchFunc(t.of.waiting, t, func(a, b *Slot) int { return a.number - b.number })
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
func (t *Slot) Free() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.free
}

// Wait takes the slot as soon as it can be taken; false says that stop was closed before. Leave gives
// it back in either case.
func (t *Slot) Wait(stop <-chan struct{}) bool {
	if t.Take() {
		return true
	}
	select {
	case <-t.Free():
		return true
	case <-stop:
		return false
	}
}

// Keep takes what a wave that is under way needs, which waits for nobody. busy is the side whose
// controllers it waits for, or none.
func (t *Slot) Keep(busy plans.Side) {
	if t == nil {
		return
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	t.of.waiting = slices.DeleteFunc(t.of.waiting, t.is)
	for _, s := range t.seats {
		if s == t.seats[busy] {
			s.stay()
			t.of.take(s)
		} else {
			t.of.idle(s)
		}
	}
}

// Leave gives the slot back, and the place among those that wait for one.
func (t *Slot) Leave() {
	if t == nil {
		return
	}
	t.of.lock.Lock()
	defer t.of.lock.Unlock()
	t.leave()
	t.of.admit()
}

// slotted says whether a wave may begin, or go on. One whose budgets are tight waits for nobody;
// neither does what moves nothing.
func (e *Engine) slotted(step plans.Step) bool {
	return !begins(e.journal, step) || e.Slot.Take()
}

// begins says whether the step is the first of a wave, and leaves both budgets as they were so far.
func begins(j *plans.Journal, step plans.Step) bool {
	return step.Op == plans.Tighten && j.Tight == nil
}

// seated tells the slot what the wave waits for now.
func (e *Engine) seated(step plans.Step, sight plans.Sight, err error) {
	waits := err != nil || sight.Standing == plans.During
	switch {
	case !step.Moves():
	case waits && begins(e.journal, step):
		e.Slot.Leave() // others go first
	case err != nil, waits && (sight.Idle || step.Op.Gated()):
		e.Slot.Keep("")
	case step.Op.Arrives():
		e.Slot.Keep(step.To())
	default:
		e.Slot.Keep(step.From)
	}
}

// From here on the lock is held.

// admit lets those in for whom there is room in both clusters. Who waits for a full cluster does
// not keep others from another one.
func (s *Slots) admit() {
	s.waiting = slices.DeleteFunc(s.waiting, func(t *Slot) bool {
		for _, seat := range t.seats {
			if s.taken[seat.cluster] >= s.perCluster {
				return false
			}
		}
		for _, seat := range t.seats {
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

func (s *Slots) take(seat *seat) {
	if !seat.taken {
		seat.taken = true
		s.taken[seat.cluster]++
	}
}

func (s *Slots) giveBack(seat *seat) {
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
func (s *Slots) idle(seat *seat) {
	if !seat.taken || seat.idle != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(idling, func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		if seat.idle == timer {
			s.giveBack(seat)
			s.admit()
		}
	})
	seat.idle = timer
}

func (s *seat) stay() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
}

func (t *Slot) is(o *Slot) bool { return o == t }

func (t *Slot) has() bool { return t.seats[plans.Source].taken && t.seats[plans.Destination].taken }

func (t *Slot) leave() {
	t.of.waiting = slices.DeleteFunc(t.of.waiting, t.is)
	for _, s := range t.seats {
		t.of.giveBack(s)
	}
}
