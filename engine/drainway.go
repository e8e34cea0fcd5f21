package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
	"github.com/stsmigrate/stsmigrate/sets"
	"github.com/stsmigrate/stsmigrate/writes"
)

// drainIdleTimeout is how long a wave waits for the drain of a node, counted from its last progress, and
// how long one side is let through before the other. kubectl drain asks every five seconds, and a
// pod needs its time to come back elsewhere.
const drainIdleTimeout = 30 * time.Second

// drainWay is how evictions are let through between two waves.
type drainWay struct {
	// aside is what was read for it. What a step waits for is not forgotten over it.
	aside *clusters.ReadCache
	look  plans.Look
	// turn is whose turn it is when both sides need the last unit of the budget.
	turn plans.Side
	// leave are ordinals of a side that leave it next: their nodes are rid of them soon.
	leave plans.Slice
	from  plans.Side
	// seen is what the sides were last seen to need.
	seen sets.Needs
}

func newWay(p *plans.Plan, on clusters.Clusters) *drainWay {
	y := &drainWay{aside: &clusters.ReadCache{}, turn: plans.Source}
	through := y.aside.Clients(p, on)
	y.look = pdb.HandOver(p, through, y.needs(sets.Steps{Pair: clusters.Pair{Plan: p, On: through}}))
	return y
}

// needs says which side needs the last unit of the budget.
func (y *drainWay) needs(w sets.Steps) pdb.Needs {
	return func(ctx context.Context) (plans.Side, error) {
		var err error
		if y.seen, err = w.Needs(ctx); err != nil {
			return "", err
		}
		y.seen.Spare(w.Plan, y.from, y.leave)
		return y.seen.Most(y.turn), nil
	}
}

// pass gives the turn to the other side, and says whether that needs it.
func (y *drainWay) pass() bool {
	y.turn = y.turn.Other()
	return y.seen.On(plans.Source) != "" && y.seen.On(plans.Destination) != "" && y.seen.Most(y.turn) == y.turn
}

// MakeWay lets the pods be evicted that have to be, where no ordinal is in flight. From d = 2 on
// both budgets are open there. With d = 1 only one of them can be, and it is brought to the
// side that has pods on nodes which are being drained, one after the other if both have; or to the
// side with a pod that is not ready, as what is down already is all that d allows. Like Advance
// it sends at most one write. It says who is let through, or "" for nobody.
//
// The order must hold: the journal goes back to the Relax of the wave that has arrived FIRST, so that
// whoever goes on finishes what was begun.
func (e *Engine) MakeWay(ctx context.Context) (string, error) {
	if err := e.recall(ctx); err != nil {
		return "", err
	}
	step, ok := e.arrived()
	if !ok || e.journal.Epoch != e.epoch {
		return "", nil
	}
	return e.handOver(ctx, step)
}

// arrived gives the Relax of the last wave, where that has arrived and no other has begun.
func (e *Engine) arrived() (plans.Step, bool) {
	e.journal.Done = max(e.journal.Done, e.passed)
	s, ok := e.plan.Step(e.journal.Leg, e.journal.Begun)
	return s, ok && s.Op == plans.Relax && e.journal.Done >= s.Seq-1
}

// way looks at the budgets once more.
func (e *Engine) openings(ctx context.Context, step plans.Step) (plans.Observation, error) {
	e.way.aside.Clear()
	e.way.seen = nil
	s, err := e.way.look(ctx, e.moment(e.journal, step, true))
	if err == nil && e.way.seen == nil { // there is more than one unit, or one side has all
		_, err = e.way.needs(sets.Steps{Pair: clusters.Pair{Plan: e.plan, On: e.way.aside.Clients(e.plan, e.on)}})(ctx)
	}
	return s, err
}

func (e *Engine) handOver(ctx context.Context, step plans.Step) (string, error) {
	s, err := e.openings(ctx, step)
	if err != nil {
		return "", err
	}
	j := e.journal
	switch {
	case s.Standing == plans.Conflict:
		return "", nil // the next step says so
	case s.Standing == plans.During:
		return "making way for a drain: " + s.Reason, nil
	case s.Standing == plans.Before:
		if j.Touched = nil; step.Op == plans.Relax {
			j.Done, e.passed = step.Seq-1, 0
		}
		if e.recorded > j.Done {
			if err := e.save(ctx); err != nil {
				return "", writes.IgnoreAnswers(err)
			}
		} else if same, err := e.unmoved(ctx); err != nil || !same {
			return "", err
		}
		return "making way for a drain: " + s.Reason, writes.IgnoreAnswers(s.Write(ctx))
	case step.Op == plans.Relax:
		j.Done, e.passed = max(j.Done, step.Seq), step.Seq
	}
	return e.letThrough(step), nil
}

// letThrough says whose evictions are.
func (e *Engine) letThrough(step plans.Step) string {
	seen := e.way.seen
	const drained = "nodes are being drained: evictions of %s are let through"
	first := seen.Most(e.way.turn)
	switch {
	case seen.On(plans.Sides()...) == "":
		return ""
	case first == "" || !pdb.Contested(e.plan, step):
		return fmt.Sprintf(drained, seen.On(plans.Sides()...))
	}
	now, next := seen.On(first), seen.On(first.Other())
	switch {
	case now == "":
		return fmt.Sprintf(drained+" when pod %s of the %s is ready", next, seen[first].Down, first)
	case next != "":
		return fmt.Sprintf(drained+", and after them those of %s", now, next)
	}
	return fmt.Sprintf(drained, now)
}

// Tend makes way while nobody carries the plan. It takes the plan over when there is something to
// write, and only then: whoever had it may still be writing (S9). What the plan rests for stays as
// it is.
func (e *Engine) Tend(ctx context.Context) (string, error) {
	e.journal = nil // persons may have written their wishes
	if err := e.recall(ctx); err != nil {
		return "", err
	}
	step, ok := e.rests()
	if !ok || !pdb.Contested(e.plan, step) {
		return "", nil
	}
	if e.journal.Epoch != e.epoch {
		mine := e.epoch
		e.epoch = e.journal.Epoch // to look, and not to write
		s, err := e.openings(ctx, step)
		e.epoch = mine
		if err != nil || s.Standing != plans.Before {
			return e.letThrough(step), err
		}
		if err := e.takeOver(ctx, func(*plans.Journal) error { return nil }); err != nil {
			return "", err
		}
		if err := e.recall(ctx); err != nil {
			return "", err
		}
		if step, ok = e.rests(); !ok || e.journal.Epoch != e.epoch {
			return "", nil // somebody goes on with it
		}
	}
	who, err := e.handOver(ctx, step)
	if err == nil && e.journal != nil && e.journal.Done > e.recorded {
		err = writes.IgnoreAnswers(e.save(ctx))
	}
	return who, err
}

// rests gives the step by which the budgets of a plan that nobody carries are as they are: the
// Relax of the wave that has arrived last, or the Tighten of one that has not left.
func (e *Engine) rests() (plans.Step, bool) {
	if step, ok := e.arrived(); ok {
		return step, true
	}
	step, began, more := e.journal.Next(e.plan)
	return step, more && began && step.Op == plans.Tighten
}

// yield lets drains go on: inside a step the budgets may allow nothing, and the time between two
// steps is too short for an eviction to hit. So while pods of the set are on nodes that are being
// drained, the next ordinal waits, with nothing in flight. It is a courtesy: what cannot be read
// does not hold the move up, and a node that is cordoned and not drained delays every ordinal,
// once for each side that has such nodes.
func (r *run) yield(ctx context.Context, done plans.Step) {
	if r.journal == nil {
		return
	}
	next, more := r.plan.Step(r.journal.Leg, done.Seq+1)
	if !more || !next.Moves() || !r.drains(ctx) {
		return
	}
	r.way.from, r.way.leave = next.From, next.Ordinals
	defer func() { r.way.leave = plans.Slice{} }()
	patience := time.NewTimer(drainIdleTimeout)
	defer patience.Stop()
	last, passed := "", false
	for {
		why, err := r.MakeWay(ctx)
		if err != nil || why == "" {
			return
		}
		if why != last {
			patience.Reset(drainIdleTimeout)
			last = why
			r.report(Progress{Kind: Waiting, Step: done, Reason: fmt.Sprintf("%s; the next ordinal waits up to %s", why, drainIdleTimeout)})
		}
		if !r.waitForChange(ctx, patience.C) {
			continue
		}
		if passed || r.stopped(ctx) || !r.way.pass() {
			return
		}
		passed = true
		patience.Reset(drainIdleTimeout)
	}
}

// drains says whether any node is being drained.
func (e *Engine) drains(ctx context.Context) bool {
	w := sets.Steps{Pair: clusters.Pair{Plan: e.plan, On: e.on}}
	for _, side := range plans.Sides() {
		if nodes, err := sets.Drained(ctx, w.Pair, side); err == nil && len(nodes) > 0 {
			return true
		}
		if e.plan.OneCluster() {
			break
		}
	}
	return false
}

func (r *run) stopped(ctx context.Context) bool {
	select {
	case <-r.Stop:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// waitForChange waits for news of what was looked at, and says whether none came in time. Nodes of a large
// cluster are news all the time, so it takes a breath first.
func (r *run) waitForChange(ctx context.Context, limit <-chan time.Time) bool {
	pause := time.NewTimer(minRecheck)
	defer pause.Stop()
	var bell <-chan struct{}
	for {
		select {
		case <-pause.C:
			bell = r.Wake.C()
		case <-bell:
			if r.way.aside.Outdated(r.Wake.Take()) {
				return false
			}
		case <-limit:
			return true
		case <-r.Stop:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// minRecheck is how long it is not looked again, whatever happens.
const minRecheck = 2 * time.Second

// meanwhile makes way while a wave waits to begin, which may take long. It says whether the last wave has
// to be looked at once more for that.
func (r *run) meanwhile(ctx context.Context) bool {
	if r.last.Step.Op != plans.Tighten {
		return false
	}
	if _, err := r.MakeWay(ctx); err != nil {
		r.Report(r.last, err)
		return false
	}
	if r.journal == nil {
		return false
	}
	step, ok := r.arrived()
	return ok && r.journal.Done < step.Seq
}

// Attend tends the plan until ctx ends. Where both sides are drained, they take turns.
func (e *Engine) Attend(ctx context.Context, wake *clusters.ChangeSignal, complain func(error)) {
	r := run{Engine: e, Options: Options{Wake: wake}}
	patience := time.NewTimer(drainIdleTimeout)
	defer patience.Stop()
	for last := ""; ctx.Err() == nil; {
		why, err := e.tended(ctx)
		if err != nil && ctx.Err() == nil {
			complain(fmt.Errorf("budgets: %w", err))
		}
		if why != last {
			last = why
			patience.Reset(drainIdleTimeout)
		}
		if r.waitForChange(ctx, patience.C) {
			e.way.pass()
			patience.Reset(drainIdleTimeout)
		}
	}
}

// tended is Tend in a goroutine of its own.
func (e *Engine) tended(ctx context.Context) (why string, err error) {
	defer plans.RecoverPanic(&err)
	return e.Tend(ctx)
}

// OneSideOpen says whether the plan rests where nodes of one side only can be drained, and it takes
// somebody who tends it to let those of the other side be drained.
func OneSideOpen(p *plans.Plan, j *plans.Journal) bool {
	known := *j
	step, ok := (&Engine{plan: p, journal: &known}).rests()
	return ok && !j.Ended() && pdb.Contested(p, step)
}

// drainable says which nodes can be drained while the plan rests, and how to have it otherwise.
func (e *Engine) drainable(ctx context.Context, j *plans.Journal, holder string, command func(verb string) string) string {
	if state := records.State(e.plan, j, holder); state == "Moving" || state == "Aborting" || !OneSideOpen(e.plan, j) {
		return ""
	}
	known := *j
	e.journal = &known
	step, _ := e.rests()
	side, err := pdb.Holder(ctx, e.plan, e.on, step)
	switch {
	case err != nil:
		return ""
	case holder != "":
		return fmt.Sprintf("nodes of both sides can be drained, one side at a time: %s sees to it", holder)
	case side == "":
		return fmt.Sprintf("no node with pods of the set can be drained; %s lets drains through", command("names -w"))
	}
	return fmt.Sprintf("nodes of the %s can be drained, those of the %s cannot; %s lets drains of both sides through", side, side.Other(), command("names -w"))
}
