package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
)

// queue is many plans at the same slots.
type queue struct {
	*Slots
	t   *testing.T
	all map[string]*Slot
}

// of gives the slot of a plan that moves from one cluster to another, as its name says: "a-b".
func (q *queue) of(name string) *Slot {
	if q.all[name] == nil {
		from, to, _ := strings.Cut(strings.TrimRight(name, "123"), "-")
		q.all[name] = q.Of(&plans.Plan{Source: plans.Ref{Cluster: types.UID(from)}, Destination: plans.Ref{Cluster: types.UID(to)}})
	}
	return q.all[name]
}

// expect compares what has its slot.
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

// seats compares how many of a cluster are taken.
func (q *queue) seats(what string, cluster types.UID, want int) {
	q.t.Helper()
	q.lock.Lock()
	defer q.lock.Unlock()
	if got := q.taken[cluster]; got != want {
		q.t.Errorf("%s: %d, expected %d", what, got, want)
	}
}

// empty expects that nothing is taken, and nobody waits, when all have left.
func (q *queue) empty() {
	q.t.Helper()
	for _, slot := range q.all {
		slot.Leave()
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	if len(q.taken) > 0 || len(q.waiting) > 0 {
		q.t.Errorf("left over: %v, %d", q.taken, len(q.waiting))
	}
}

func TestWavesWaitWhereOthersAreUnderWay(t *testing.T) {
	q := &queue{NewSlots(2), t, map[string]*Slot{}}
	for _, name := range []string{"a-b", "b-c", "c-b", "c-d", "a-a"} {
		if let := q.of(name).Take(); let == (name == "c-b") { // b is full
			t.Errorf("%s: %t", name, let)
		}
	}
	q.expect("b is full, and keeps nobody from c and d", "a-b", "b-c", "c-d", "a-a")
	q.of("b-c").Leave()
	q.expect("b and c have room again", "a-b", "c-b", "c-d", "a-a")
	select {
	case <-q.of("c-b").Free():
	default:
		t.Error("who waited is not told")
	}
	q.of("a-b2").Keep(plans.Source)
	q.of("a-b2").Keep(plans.Destination)
	q.expect("one that is under way waits for nobody", "a-b", "a-b2", "c-b", "c-d", "a-a")
	q.of("c-b").Leave()
	if q.of("b-c").Take() {
		t.Error("b has no room, and somebody is let in")
	}
	q.of("b-c").Leave()
	q.of("a-b2").Leave()
	q.expect("who has left the queue is not let in", "a-b", "c-d", "a-a")
	q.empty()
	if s := NewSlots(0); s.Of(&plans.Plan{}) != nil || !s.Of(&plans.Plan{}).Take() {
		t.Error("without a limit nobody waits")
	}
}

// Plans are finished in the order in which they were begun.
func TestTheOldestPlanIsTheNext(t *testing.T) {
	q := &queue{NewSlots(1), t, map[string]*Slot{}}
	for _, name := range []string{"a-b", "a-b1", "a-b2", "a-b3"} {
		q.of(name)
	}
	for _, name := range []string{"a-b3", "a-b2", "a-b1", "a-b"} {
		q.of(name).Take()
	}
	for _, name := range []string{"a-b3", "a-b", "a-b1", "a-b2"} {
		q.expect("one after the other", name)
		q.of(name).Leave()
	}
	q.empty()
}

// A wave has its seat in a cluster for as long as it waits for the controllers there, and keeps
// others from it for half a minute besides.
func TestAWaveGivesItsSeatsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{NewSlots(1), t, map[string]*Slot{}}
		later := func() { <-time.After(idling); synctest.Wait() }
		wave, toB, toC := q.of("a-b"), q.of("d-b"), q.of("a-c")
		wave.Take()
		wave.Keep(plans.Source)
		if toB.Take() || toC.Take() {
			t.Error("they do not wait")
		}
		later()
		q.expect("it is busy in a, and has not come to b in its time", "d-b")
		wave.Keep(plans.Destination)
		q.expect("it comes to b, where another one is, and waits for nobody", "a-b", "d-b")
		later()
		q.expect("it is busy in b", "a-c") // d-b has idled, as nobody says what it does
		toB.Leave()
		if toB.Take() {
			t.Error("b has room, while one is busy there")
		}
		wave.Keep("")
		later()
		q.expect("it waits for its application, and a-c has not begun in its time", "d-b")
		if toC.Leave(); !toC.Take() {
			t.Error("a and c have no room")
		}
		toC.Leave()
		wave.Leave()
		later()
		if q.of("b-a").Take(); toB.Take() { // it has not begun in its time, and comes after the other now
			t.Error("a slot that it has idled away lets a wave begin")
		}
		q.empty()
		one := q.of("e-e")
		one.Take()
		one.Keep(plans.Destination)
		later()
		one.Keep(plans.Source)
		q.expect("it has come in time", "e-e")
		q.seats("in one cluster it has one seat", "e", 1)
		q.empty()
	})
}

func TestWhoWaitsForASlotCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{NewSlots(1), t, map[string]*Slot{}}
		first, second, stop, got := q.of("a-b"), q.of("b-c"), make(chan struct{}), make(chan bool, 1)
		second.Take() // what it is told of this is not about a later time
		second.Leave()
		wait := func() { got <- second.Wait(stop) }
		if !first.Wait(stop) {
			t.Error("nobody is before the first")
		}
		go wait()
		synctest.Wait()
		if len(got) > 0 {
			t.Error("the second does not wait")
		}
		if first.Leave(); !<-got {
			t.Error("the second is not let in")
		}
		second.Leave()
		first.Take()
		go wait()
		if close(stop); <-got {
			t.Error("the second is let in when it is to stop")
		}
		q.empty()
		if !NewSlots(0).Of(&plans.Plan{}).Wait(stop) {
			t.Error("without a limit somebody waits")
		}
	})
}

// What a wave waits for says in which cluster it is busy.
func TestWhereAWaveIsBusy(t *testing.T) {
	wait := plans.Wait("")
	for name, c := range map[string]struct {
		op    plans.Op
		sight plans.Sight
		err   error
		want  plans.Side
	}{
		"its set is made smaller":             {plans.Shrink, plans.Write("", plans.Undo{}, nil), nil, plans.Destination},
		"its pod is to be deleted":            {plans.Vacate, wait, nil, plans.Destination},
		"its pod ends":                        {plans.Vacate, wait.Idly(), nil, ""},
		"its claim is to go":                  {plans.Release, wait, nil, plans.Destination},
		"its volume is to be bound":           {plans.Claim, wait, nil, plans.Source},
		"its pod is to be made":               {plans.Grow, wait, nil, plans.Source},
		"its pod starts":                      {plans.Grow, wait.Idly(), nil, ""},
		"its application is asked":            {plans.Verify, wait, nil, ""},
		"its budgets are to be open":          {plans.Relax, wait, nil, plans.Source},
		"a cluster does not answer":           {plans.Grow, plans.Sight{}, errors.New("connection refused"), ""},
		"its budgets, which are tight, count": {plans.Tighten, wait, nil, plans.Destination},
	} {
		s := NewSlots(1).Of(&plans.Plan{Source: plans.Ref{Cluster: "a"}, Destination: plans.Ref{Cluster: "b"}})
		s.Take()
		e := &Engine{Slot: s, journal: &plans.Journal{Tight: &metav1.Time{}}}
		e.seated(plans.Step{Op: c.op, From: plans.Destination, Ordinals: plans.Slice{Replicas: 1}}, c.sight, c.err)
		for _, side := range plans.Sides() {
			if busy := s.seats[side].idle == nil; !s.seats[side].taken || busy != (side == c.want) {
				t.Errorf("%s: busy on the %s: %t", name, side, busy)
			}
		}
		s.Leave()
	}
}
