package simulation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// This file explores every order in which controllers and processes can act in a small world, breadth first, until
// there is no state left that was not seen before. Where many states wait, it goes into the depth first. A process is
// its epoch and, at times, one write of it that has not arrived. It looks until it has written once, or has to wait. In some
// worlds each process also has what its engine remembers (mind.go), in the others each act has a new engine.

// limits bound an exploration. What they count is spent on the way to a state.
type limits struct {
	deaths  int // processes that die, at any of their writes or between two
	delays  int // writes that arrive later than everything that other processes do meanwhile
	rivals  int // processes that take the plan over while another one lives
	returns int // processes that abort the plan
	turns   int // processes that turn the plan to the destination again
}

// within reports whether others leave as much of everything.
func (l limits) within(others limits) bool {
	return l.deaths <= others.deaths && l.delays <= others.delays && l.rivals <= others.rivals && l.returns <= others.returns && l.turns <= others.turns
}

// runnerOf is one process of a state.
type runnerOf struct {
	epoch   int64
	pending *request
	// knows is what its engine remembers, where that is explored; nil for nothing.
	knows *memory
}

// state is one state of the world and of its processes. Its world is never changed.
type state struct {
	w     *world
	procs []runnerOf
	left  limits
	// from and how tell how the state was reached.
	from *state
	how  string
	id   [sha256.Size]byte
}

// exploration is everything that was seen.
type exploration struct {
	ctx   context.Context                //nolint:containedctx // it lives as long as one test
	seen  map[[sha256.Size]byte][]limits // the most that was left in each state
	count int                            // of the states that were gone on from, or will be
	next  []*state
	most  int
	ends  map[string]int
	found []string
	texts map[client.Object]*text
	mind  *mind  // nil for a new engine in each act
	bytes []byte // of the last summary, to be written over
}

// explore visits every state that can be reached, at most so many. It stops at the first violation.
func explore(ctx context.Context, w *world, left limits, most int) *exploration {
	x := &exploration{ctx: ctx, seen: map[[sha256.Size]byte][]limits{}, most: most, ends: map[string]int{}, texts: map[client.Object]*text{}}
	if w.options.Remembers {
		x.mind = newMind(w)
	}
	x.reach(&state{w: w.fork(1), left: left})
	for len(x.next) > 0 && x.count < x.most && len(x.found) == 0 {
		s := x.pop()
		x.expand(s)
		s.w, s.procs = nil, nil // what leads to later states is how alone
		if len(x.texts) > maxTexts {
			clear(x.texts)
		}
	}
	return x
}

// These bound the memory of an exploration: a state that waits has a world, and the texts hold every object that ever
// was.
const maxWaiting, maxTexts = 20_000, 100_000

// pop takes the state that has waited for longest, so that the path to a violation is a short one. When many wait it is
// the one that was reached last: what follows from that waits in its place.
func (x *exploration) pop() *state {
	if last := len(x.next) - 1; last >= maxWaiting {
		s := x.next[last]
		x.next = x.next[:last]
		return s
	}
	s := x.next[0]
	x.next[0] = nil // else the world stays in memory
	x.next = x.next[1:]
	return s
}

// complete reports whether every state was visited.
func (x *exploration) complete() bool { return len(x.next) == 0 && len(x.found) == 0 }

// reach adds a state, unless it was seen before with as much left: all that can happen was tried there. It reports whether it is another state than the one before.
func (x *exploration) reach(s *state) bool {
	if len(s.w.broken) > 0 {
		x.fail(s, strings.Join(s.w.broken, "; "))
		return true
	}
	s.id = x.identity(s)
	if !slices.ContainsFunc(x.seen[s.id], s.left.within) {
		x.seen[s.id] = append(x.seen[s.id], s.left)
		x.count++
		x.next = append(x.next, s)
	}
	return s.from == nil || s.id != s.from.id
}

func (x *exploration) fail(s *state, why string) {
	var path []string
	for at := s; at != nil && at.how != ""; at = at.from {
		path = append(path, at.how)
	}
	slices.Reverse(path)
	x.found = append(x.found, why+"\n  "+strings.Join(path, "\n  "))
}

// step returns a copy of the state in which something can happen.
func (s *state) step(how string) *state {
	w := s.w.fork(1)
	w.trail, w.acts = nil, nil // how the state was reached is told by the path to it
	return &state{w: w, procs: slices.Clone(s.procs), left: s.left, from: s, how: how}
}

// expand reaches every state that follows from one.
func (x *exploration) expand(s *state) {
	active := x.controllers(s)
	ended := s.w.journal.Ended()
	for k := range s.procs {
		active = x.process(s, k) || active
	}
	switch {
	case len(s.procs) == 0 && !ended:
		active = x.start(s, s.onward()) || active
	case len(s.procs) == 1 && s.left.rivals > 0 && !ended:
		x.start(s, s.onward())
	}
	if s.left.returns > 0 && s.turnable(plans.Abort) {
		x.start(s, plans.Abort)
	}
	if s.left.turns > 0 && s.turnable(plans.Move) {
		x.start(s, plans.Move)
	}
	if active {
		return
	}
	x.end(s)
}

// turnable reports whether another process can turn the plan to a direction.
func (s *state) turnable(to plans.Direction) bool {
	j := s.w.journal
	return len(s.procs) < 2 && !j.Ended() && j.Leg.Direction != to && j.Parted(s.w.plan) == ""
}

// onward returns the direction in which a new process takes a plan.
func (s *state) onward() plans.Direction {
	j := s.w.journal
	if j.Leg.Direction == plans.Move && j.Outcome == plans.Moved {
		return plans.Finalize
	}
	return j.Leg.Direction
}

// end is a state from which nothing leads on. It has to be the end of the plan.
func (x *exploration) end(s *state) {
	j := s.w.journal
	if !j.Ended() {
		x.fail(s, fmt.Sprintf("L1: nothing goes on, and the plan has not ended; journal %+v", j))
		return
	}
	if marks := s.w.marked(); len(marks) > 0 {
		x.fail(s, fmt.Sprintf("S15: marks are left on %q", marks))
	}
	x.ends[string(j.Outcome)]++
}

// controllers lets each controller make one change, in every way in which it could choose among what it has to do. It
// reports whether any of them had something to do.
func (x *exploration) controllers(s *state) bool {
	active := false
	var next *state
	for k := range s.w.actors() {
		for ways := (&choices{}); ; {
			if next == nil {
				next = s.step("")
			}
			next.w.choices = ways
			a := next.w.actors()[k]
			acted := a.act(a.on)
			next.w.choices = nil
			if acted && !ways.repeated {
				active = true
				next.how = a.name + " of " + a.on.name
				next.w.check()
				x.reach(next)
			}
			if acted {
				next = nil // a controller that has nothing to do changes nothing, so that the copy serves the next one
			}
			if !ways.next() {
				break
			}
		}
	}
	return active
}

// process lets one process act: whole, dying at each of its writes, and with each of them delayed.
func (x *exploration) process(s *state, k int) bool {
	if p := s.procs[k].pending; p != nil {
		next := s.step("a delayed " + p.verb + " arrives")
		next.procs[k].pending = nil
		next.deliver(s.procs[k])
		x.reach(next)
		return true
	}
	whole := s.step(fmt.Sprintf("the process of epoch %d acts", s.procs[k].epoch))
	writes, gone := x.act(whole, k, nil)
	if gone {
		whole.procs = slices.Delete(whole.procs, k, k+1)
	}
	active := x.reach(whole) || gone
	for n := range writes {
		if s.left.deaths > 0 {
			x.dies(s, k, n)
		}
		if s.left.delays > 0 {
			x.delays(s, k, n)
		}
	}
	if s.left.deaths > 0 {
		next := s.step(fmt.Sprintf("the process of epoch %d dies", s.procs[k].epoch))
		next.left.deaths--
		next.procs = slices.Delete(next.procs, k, k+1)
		x.reach(next)
	}
	return active
}

func (x *exploration) dies(s *state, k, n int) {
	next := s.step(fmt.Sprintf("the process of epoch %d dies before write %d", s.procs[k].epoch, n+1))
	next.left.deaths--
	x.act(next, k, atWrite(next.w, n, crashBefore))
	next.procs = slices.Delete(next.procs, k, k+1)
	x.reach(next)
}

func (x *exploration) delays(s *state, k, n int) {
	next := s.step(fmt.Sprintf("write %d of the process of epoch %d is delayed", n+1, s.procs[k].epoch))
	next.left.delays--
	x.act(next, k, atWrite(next.w, n, delayed))
	x.reach(next)
}

// atWrite returns the fault of the n-th write from now on.
func atWrite(w *world, n int, f fault) func(int) fault {
	first := w.writes
	return func(write int) fault {
		if write == first+n {
			return f
		}
		return ""
	}
}

// act lets a process go on until it has written once, or waits. It returns how many writes it has sent, the journal
// included, and whether the process has come to its end.
func (x *exploration) act(s *state, k int, faults func(int) fault) (writes int, gone bool) {
	r := s.w.process()
	r.at, r.epoch = faults, s.procs[k].epoch
	before := s.w.writes
	e := x.engine(r, s.procs[k])
	if x.mind != nil {
		defer func() { s.procs[k].knows = x.mind.keep(s.w) }()
	}
	for range 50 {
		p, err := e.Advance(x.ctx)
		writes = s.w.writes - before
		switch {
		case r.pending != nil:
			s.procs[k].pending = r.pending
			return writes, false
		case r.dead, err != nil:
			return writes, false
		case p.Kind == engine.Blocked && !p.Overtaken:
			s.w.fail("S12", "blocked, although no other writer has interfered: %s", p.Reason)
			return writes, true
		case p.Kind == engine.Finished, p.Kind == engine.Blocked, p.Kind == engine.Paused:
			return writes, true
		case p.Kind != engine.Advanced:
			return writes, false
		}
	}
	return writes, false
}

// engine returns the engine of a process: a new one, or that of the exploration with what the process remembers.
func (x *exploration) engine(r *process, of runnerOf) (e *engine.Engine) {
	if x.mind != nil {
		e = x.mind.wake(r, of.knows)
	} else {
		on := clusters.Clusters{}
		for side, c := range r.stores {
			on[side] = c
		}
		e = engine.New(r.w.plan, records.NewStore(r.stores[plans.Destination], green, planName), on)
		e.Without(r.w.options.Without...)
		e.Continue(r.epoch)
	}
	e.Gates.Prober = prober{r}
	return e
}

// deliver lets a write arrive that a process sent earlier.
func (s *state) deliver(p runnerOf) {
	for _, on := range s.w.stores {
		if on.name != p.pending.cluster {
			continue
		}
		r := s.w.process()
		r.epoch = p.epoch
		o := clone(p.pending.object)
		_ = r.apply(on, p.pending.verb, o, func() error { return p.pending.send(on, o) }) // the process gets no answer
	}
}

// start lets a new process take the plan over: whole, and dying at each of its writes.
func (x *exploration) start(s *state, direction plans.Direction) bool {
	begin := func(how string, faults func(*world) func(int) fault) (*state, int, bool) {
		next := s.step(how)
		if len(s.procs) > 0 {
			next.left.rivals = max(next.left.rivals-1, 0)
		}
		if direction == plans.Abort && s.w.journal.Leg.Direction != plans.Abort {
			next.left.returns--
		}
		r := next.w.process()
		if r.turns = direction == plans.Move && s.w.journal.Leg.Direction != plans.Move; r.turns {
			next.left.turns--
		}
		before := next.w.writes
		r.at = faults(next.w)
		_, err := r.takeOver(x.ctx, direction)
		if err == nil {
			next.procs = append(next.procs, runnerOf{epoch: r.epoch})
		}
		if err != nil && !errors.Is(err, errDead) && !apierrors.IsConflict(err) && len(s.procs) == 0 {
			x.fail(next, fmt.Sprintf("a process cannot take the plan over: %v", err))
		}
		return next, next.w.writes - before, err == nil
	}
	whole, writes, ok := begin(fmt.Sprintf("a process takes over for %s", direction), func(*world) func(int) fault { return nil })
	if !ok {
		return false
	}
	active := x.reach(whole)
	for n := range writes {
		if s.left.deaths == 0 {
			break
		}
		next, _, _ := begin(fmt.Sprintf("a process takes over for %s, and dies before write %d", direction, n+1), func(w *world) func(int) fault { return atWrite(w, n, crashBefore) })
		next.left.deaths--
		x.reach(next)
	}
	return active
}
