package simulation

import (
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// member is one of several processes that carry out one plan at the same time. Each of its reads and writes
// waits until the processes lets it proceed.
type member struct {
	r         *process
	direction plans.Direction
	next      func() (struct{}, bool)
	stop      func()
	sleeps    int // rounds in which none of its requests proceeds
	end       end
	err       error
	over      bool
}

func (w *world) member(t *testing.T, direction plans.Direction, sleeps int) *member {
	t.Helper()
	m := &member{r: w.process(), direction: direction, sleeps: sleeps}
	m.next, m.stop = iter.Pull(func(yield func(struct{}) bool) {
		m.r.pause = func() bool { return yield(struct{}{}) }
		m.end, m.err = m.r.run(t.Context(), direction, nil)
	})
	return m
}

// processes lets members and controllers act in an order drawn from a seed, until the last member has ended.
type processes struct {
	w       *world
	rng     *rand.Rand
	members []*member
	deaths  bool // members die now and then
}

func (c *processes) round() {
	if c.rng.IntN(3) == 0 {
		c.w.tick()
	}
	var awake []*member
	for _, m := range c.members {
		switch {
		case m.over:
		case m.sleeps > 0:
			m.sleeps--
		default:
			awake = append(awake, m)
		}
	}
	if len(awake) == 0 {
		c.w.tick()
		return
	}
	m := awake[c.rng.IntN(len(awake))]
	if c.rng.IntN(60) == 0 { // delayed: its next request arrives late
		m.sleeps = 1 + c.rng.IntN(600)
		return
	}
	if c.deaths && c.rng.IntN(300) == 0 {
		m.stop()
		m.over = true
		return
	}
	if _, more := m.next(); !more {
		m.over = true
	}
}

// until lets time pass until the member has ended.
func (c *processes) until(t *testing.T, m *member) {
	t.Helper()
	for range 400_000 {
		if c.round(); m.over {
			return
		}
	}
	t.Fatalf("seed %d: %s by epoch %d never ends; journal %+v", c.w.options.Seed, m.direction, m.r.epoch, c.w.journal)
}

func TestProcessesThatOverlapDoNoHarm(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(30, 5000)
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drawn(t, "overlaps", from, to, 5000)
			first := newWorld(sc)
			done := goldenOf(t, first.fork(0), journey{plans.Move, plans.Finalize})
			for seed := from; seed <= to; seed++ {
				w := first.fork(seed)
				if seed%2 == 0 {
					w.evictions = 3
				}
				w.app.fickle = seed%4 > 1
				overlap(t, w, done)
				if t.Failed() {
					t.Fatalf("that was seed %d", seed)
				}
			}
		})
	}
}

// overlap runs up to three processes at the same time, each taking over from the others at some point. After
// that it runs one process at a time until the plan has ended.
func overlap(t *testing.T, w *world, done golden) {
	t.Helper()
	c := &processes{w: w, rng: rand.New(rand.NewPCG(w.options.Seed, 11))}
	defer func() {
		for _, m := range c.members {
			m.stop()
		}
	}()
	directions := []plans.Direction{plans.Move, plans.Move, plans.Abort}
	c.members = []*member{
		w.member(t, plans.Move, 0),
		w.member(t, directions[c.rng.IntN(3)], c.rng.IntN(900)),
		w.member(t, directions[c.rng.IntN(3)], c.rng.IntN(1800)),
	}
	c.deaths = w.options.Seed%3 > 0
	c.until(t, c.members[1])
	c.until(t, c.members[2])
	c.deaths = false
	for range 8 {
		if w.journal.Ended() {
			break
		}
		m := w.member(t, c.onward(), 0)
		c.members = append(c.members, m)
		c.until(t, m)
		if m.err != nil && !errors.Is(m.err, errReplaced) {
			t.Logf("%s: %v", m.direction, m.err)
		}
		unbroken(t, w)
	}
	for _, m := range c.members {
		c.until(t, m) // late requests arrive even after the end
	}
	w.sweep(t)
	switch w.journal.Outcome {
	case plans.Aborted:
		cleanEnd(t, w, w.start)
	case plans.Finalized:
		cleanEnd(t, w, done.end)
	default:
		last := c.members[len(c.members)-1]
		t.Errorf("seed %d: the plan never ends: %s, %v; journal %+v", w.options.Seed, last.end, last.err, w.journal)
	}
}

// sweep removes the objects that a stale process created after it was fenced. No precondition can stop a
// creation whose request was under way, so the object has to be harmless: it has a stamp of the stale epoch,
// and a set has no ordinals.
func (w *world) sweep(t *testing.T) {
	t.Helper()
	for _, l := range w.late {
		s := w.stores[0]
		if s.name != l.on {
			s = w.stores[1]
		}
		o, ok := s.objects[l.key]
		if !ok {
			continue
		}
		stamp, marked := plans.Stamped(o)
		if set, ok := o.(*appsv1.StatefulSet); ok && *set.Spec.Replicas > 0 || marked && stamp.Epoch >= w.journal.Epoch {
			continue // adopted, or of a live process
		}
		if marked {
			t.Logf("seed %d: %s was made late and is left over", w.options.Seed, l.key)
			s.remove(l.key)
		}
	}
}

// onward returns a direction that the user could request in this state.
func (c *processes) onward() plans.Direction {
	switch {
	case c.w.journal.Leg.Direction != plans.Move:
		return c.w.journal.Leg.Direction
	case c.w.journal.Outcome == plans.Moved && c.rng.IntN(2) == 0:
		return plans.Finalize
	case c.w.journal.Outcome == plans.Moved || c.rng.IntN(3) == 0:
		return plans.Abort
	default:
		return plans.Move
	}
}
