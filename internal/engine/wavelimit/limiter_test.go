package wavelimit

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
)

// queue is many plans with one Limiter.
type queue struct {
	*Limiter
	t   *testing.T
	all map[string]*Permit
}

// of returns the permit of a plan that moves from one cluster to another, as its name states: "a-b".
func (q *queue) of(name string) *Permit {
	if q.all[name] == nil {
		from, to, _ := strings.Cut(strings.TrimRight(name, "123"), "-")
		q.all[name] = q.Of(&plans.Plan{Source: plans.Ref{Cluster: types.UID(from)}, Destination: plans.Ref{Cluster: types.UID(to)}})
	}
	return q.all[name]
}

// expect compares the names of the plans that have their permit.
func (q *queue) expect(what string, names ...string) {
	q.t.Helper()
	q.lock.Lock() // timers give seats back
	defer q.lock.Unlock()
	var got []string
	for name, slot := range q.all {
		if slot.has() {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		q.t.Errorf("%s: %v, expected %v", what, got, names)
	}
}

// seats compares how many seats of a cluster are taken.
func (q *queue) seats(what string, cluster types.UID, want int) {
	q.t.Helper()
	q.lock.Lock()
	defer q.lock.Unlock()
	if got := q.taken[cluster]; got != want {
		q.t.Errorf("%s: %d, expected %d", what, got, want)
	}
}

// empty releases all permits, and requires that no seat is taken and no permit waits.
func (q *queue) empty() {
	q.t.Helper()
	for _, slot := range q.all {
		slot.Release()
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	if len(q.taken) > 0 || len(q.waiting) > 0 {
		q.t.Errorf("left over: %v, %d", q.taken, len(q.waiting))
	}
}

func TestWavesWaitWhereOthersAreUnderWay(t *testing.T) {
	q := &queue{New(2), t, map[string]*Permit{}}
	for _, name := range []string{"a-b", "b-c", "c-b", "c-d", "a-a"} {
		if let := q.of(name).Acquire(); let == (name == "c-b") { // b is full
			t.Errorf("%s: %t", name, let)
		}
	}
	q.expect("b is full, and keeps nobody from c and d", "a-b", "b-c", "c-d", "a-a")
	q.of("b-c").Release()
	q.expect("b and c have room again", "a-b", "c-b", "c-d", "a-a")
	select {
	case <-q.of("c-b").Free():
	default:
		t.Error("who waited is not told")
	}
	q.of("a-b2").Retain(plans.Source)
	q.of("a-b2").Retain(plans.Destination)
	q.expect("one that is under way waits for nobody", "a-b", "a-b2", "c-b", "c-d", "a-a")
	q.of("c-b").Release()
	if q.of("b-c").Acquire() {
		t.Error("b has no room, and somebody is let in")
	}
	q.of("b-c").Release()
	q.of("a-b2").Release()
	q.expect("who has left the queue is not let in", "a-b", "c-d", "a-a")
	q.empty()
	if s := New(0); s.Of(&plans.Plan{}) != nil || !s.Of(&plans.Plan{}).Acquire() {
		t.Error("without a limit nobody waits")
	}
}

// Plans are finished in the order in which they were begun.
func TestTheOldestPlanIsTheNext(t *testing.T) {
	q := &queue{New(1), t, map[string]*Permit{}}
	for _, name := range []string{"a-b", "a-b1", "a-b2", "a-b3"} {
		q.of(name)
	}
	for _, name := range []string{"a-b3", "a-b2", "a-b1", "a-b"} {
		q.of(name).Acquire()
	}
	for _, name := range []string{"a-b3", "a-b", "a-b1", "a-b2"} {
		q.expect("one after the other", name)
		q.of(name).Release()
	}
	q.empty()
}

// A plan whose wave has arrived continues unless another one would have its seats next.
func TestAPlanGivesWayToOneThatComesBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{New(1), t, map[string]*Permit{}}
		elsewhere, first, second, third := q.of("c-b"), q.of("a-b"), q.of("a-b1"), q.of("a-b2")
		expect := func(what string, p *Permit, want bool) {
			t.Helper()
			if got := p.GivesWay(); got != want {
				t.Errorf("%s: %t, expected %t", what, got, want)
			}
		}
		second.Acquire()
		expect("no plan waits", second, false)
		third.Acquire()
		expect("one that began later waits", second, false)
		q.of("c-d").Acquire()
		elsewhere.Acquire()
		expect("one that began earlier waits for another cluster too", second, false)
		elsewhere.Release()
		first.Acquire()
		expect("one that began earlier waits", second, true)
		second.Release()
		first.Retain(plans.Source)
		expect("it is the first", first, false)
		<-time.After(idleGrace)
		synctest.Wait()
		expect("it has idled a seat away, and another one waits", first, true)
		q.empty()
		expect("it has no seat, and no plan waits", first, false)
		if (*Permit)(nil).GivesWay() {
			t.Error("without a limit one gives way")
		}
	})
}

// A wave has its seat in a cluster for as long as it waits for the controllers there, and
// for idleGrace after that.
func TestAWaveGivesItsSeatsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{New(1), t, map[string]*Permit{}}
		later := func() { <-time.After(idleGrace); synctest.Wait() }
		wave, toB, toC := q.of("a-b"), q.of("d-b"), q.of("a-c")
		wave.Acquire()
		wave.Retain(plans.Source)
		if toB.Acquire() || toC.Acquire() {
			t.Error("they do not wait")
		}
		later()
		q.expect("it is busy in a, and has not come to b in its time", "d-b")
		wave.Retain(plans.Destination)
		q.expect("it comes to b, where another one is, and waits for nobody", "a-b", "d-b")
		later()
		q.expect("it is busy in b", "a-c") // d-b has idled: no call of Retain
		toB.Release()
		if toB.Acquire() {
			t.Error("b has room, while one is busy there")
		}
		wave.Retain("")
		later()
		q.expect("it waits for its application, and a-c has not begun in its time", "d-b")
		if toC.Release(); !toC.Acquire() {
			t.Error("a and c have no room")
		}
		toC.Release()
		wave.Release()
		later()
		if q.of("b-a").Acquire(); toB.Acquire() {
			t.Error("a slot that it has idled away lets a wave begin")
		}
		q.empty()
		one := q.of("e-e")
		one.Acquire()
		one.Retain(plans.Destination)
		later()
		one.Retain(plans.Source)
		q.expect("it has come in time", "e-e")
		q.seats("in one cluster it has one seat", "e", 1)
		q.empty()
	})
}

func TestWhoWaitsForASlotCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{New(1), t, map[string]*Permit{}}
		first, second, stop, got := q.of("a-b"), q.of("b-c"), make(chan struct{}), make(chan bool, 1)
		second.Acquire() // its grant must not count for a later wait
		second.Release()
		wait := func() { got <- second.Wait(stop) }
		if !first.Wait(stop) {
			t.Error("nobody is before the first")
		}
		go wait()
		synctest.Wait()
		if len(got) > 0 {
			t.Error("the second does not wait")
		}
		if first.Release(); !<-got {
			t.Error("the second is not let in")
		}
		second.Release()
		first.Acquire()
		go wait()
		if close(stop); <-got {
			t.Error("the second is let in when it is to stop")
		}
		q.empty()
		if !New(0).Of(&plans.Plan{}).Wait(stop) {
			t.Error("without a limit somebody waits")
		}
	})
}
