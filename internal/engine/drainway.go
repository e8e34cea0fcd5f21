package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// drainIdleTimeout is how long a wave waits for the drain of a node, counted from its last progress, and how
// long one side is let through before the other. kubectl drain retries every five seconds, and a pod needs
// time to come up elsewhere.
const drainIdleTimeout = 30 * time.Second

// Drains lets evictions through between two waves. Without one, a drain succeeds where the budgets are open anyway.
type Drains struct {
	*memory

	on       clusters.Clusters
	way      *drainWay
	moment   func(j *journal.Journal, step plans.Step, began bool) plans.StepContext
	takeOver func(context.Context, func(*journal.Journal) error) error
}

// drainWay decides whose evictions are let through.
type drainWay struct {
	// aside is the cache for its reads. It is separate, so that what a step waits for is not forgotten.
	aside *clusters.ReadCache
	look  plans.Look
	// turn is the side that goes first when both sides need the last unit of the budget.
	turn plans.Side
	// leave is the ordinals that leave the side from next: their nodes will be free of them soon.
	leave plans.Slice
	from  plans.Side
	// seen is what the sides were last observed to need.
	seen sets.Needs
}

func newWay(p *plans.Plan, on clusters.Clusters) *drainWay {
	y := &drainWay{aside: &clusters.ReadCache{}, turn: plans.Source}
	through := y.aside.Clients(p, on)
	y.look = sets.InTurn(sets.Unpin(p, through), pdb.HandOver(p, through, y.needs(sets.Steps{Pair: clusters.Pair{Plan: p, On: through}})))
	return y
}

// needs returns the function that finds the side which needs the last unit of the budget.
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

// pass gives the turn to the other side, and reports whether that side needs it.
func (y *drainWay) pass() bool {
	y.turn = y.turn.Other()
	return y.seen.On(plans.Source) != "" && y.seen.On(plans.Destination) != "" && y.seen.Most(y.turn) == y.turn
}

// MakeWay lets necessary evictions through while no ordinal is in flight. From d = 2 on both budgets are open
// then. With d = 1 only one of them can be open. It is the budget of the side that has pods on nodes which
// are being drained, one side after the other if both have; or of the side with a pod that is not ready, as
// what is down already is all that d allows. Like Advance it sends at most one write. It returns whose
// evictions are let through, or "" for none.
//
// The order must hold: the journal goes back to the Relax of the wave that has arrived FIRST, so that the
// process that continues finishes what was begun.
func (e *Drains) MakeWay(ctx context.Context) (string, error) {
	if e == nil {
		return "", nil
	}
	if err := e.recall(ctx); err != nil {
		return "", err
	}
	step, ok := e.arrived()
	if !ok || e.journal.Epoch != e.epoch {
		return "", nil
	}
	return e.handOver(ctx, step)
}

// openings looks at the budgets once more, and at what both sides need.
func (e *Drains) openings(ctx context.Context, step plans.Step) (plans.Observation, error) {
	e.way.aside.Clear()
	e.way.seen = nil
	s, err := e.way.look(ctx, e.moment(e.journal, step, true))
	if err == nil && e.way.seen == nil { // there is more than one unit, or one side has them all
		_, err = e.way.needs(sets.Steps{Pair: clusters.Pair{Plan: e.plan, On: e.way.aside.Clients(e.plan, e.on)}})(ctx)
	}
	return s, err
}

func (e *Drains) handOver(ctx context.Context, step plans.Step) (string, error) {
	s, err := e.openings(ctx, step)
	if err != nil {
		return "", err
	}
	j := e.journal
	switch {
	case s.Standing == plans.Conflict:
		return "", nil // the next step reports it
	case s.Standing == plans.During:
		return "making way for a drain: " + s.Reason, nil
	case s.Standing == plans.Before:
		if j.Touched = nil; step.Op.Loosens() {
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
	case step.Op.Loosens():
		j.Done, e.passed = max(j.Done, step.Seq), step.Seq
	}
	return e.letThrough(step), nil
}

// letThrough names the pods whose evictions are let through, or returns "".
func (e *Drains) letThrough(step plans.Step) string {
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

// Tend makes way while no process carries the plan. It takes the plan over only when there is something to
// write: the last process may still be writing (S9). The reason for which the plan rests stays as it is. Tend
// returns the same as MakeWay.
func (e *Drains) Tend(ctx context.Context) (string, error) {
	if e == nil {
		return "", nil
	}
	e.journal = nil // users may have recorded their requests
	if err := e.recall(ctx); err != nil {
		return "", err
	}
	step, ok := e.rests()
	if !ok || !pdb.Contested(e.plan, step) {
		return "", nil
	}
	if e.journal.Epoch != e.epoch {
		mine := e.epoch
		e.epoch = e.journal.Epoch // only to look, not to write
		s, err := e.openings(ctx, step)
		e.epoch = mine
		if err != nil || s.Standing != plans.Before {
			return e.letThrough(step), err
		}
		if err := e.takeOver(ctx, func(*journal.Journal) error { return nil }); err != nil {
			return "", err
		}
		if err := e.recall(ctx); err != nil {
			return "", err
		}
		if step, ok = e.rests(); !ok || e.journal.Epoch != e.epoch {
			return "", nil // another process continues it
		}
	}
	who, err := e.handOver(ctx, step)
	if err == nil && e.journal != nil && e.journal.Done > e.recorded {
		err = writes.IgnoreAnswers(e.save(ctx))
	}
	return who, err
}

// yield lets drains progress. Inside a step the budgets may allow nothing, and the time between two steps is
// too short for an eviction to succeed. So while pods of the set are on nodes that are being drained, the
// next ordinal waits, with nothing in flight. This is best effort: a failed read does not delay the move. A
// node that is cordoned and not drained delays every ordinal, once for each side that has such nodes.
func (r *run) yield(ctx context.Context, done plans.Step) {
	if r.journal == nil || r.Drains == nil {
		return
	}
	next, more := r.plan.Step(r.journal.Leg, done.Seq+1)
	if !more || !next.Moves() || !drained(ctx, clusters.Pair{Plan: r.plan, On: r.on}) {
		return
	}
	r.way.from, r.way.leave = next.From, next.Ordinals
	defer func() { r.way.leave, r.telling = plans.Slice{}, false }()
	patience := time.NewTimer(drainIdleTimeout)
	defer patience.Stop()
	last, passed := "", false
	for {
		why, err := r.Drains.MakeWay(ctx)
		if err != nil || why == "" {
			return
		}
		if why != last {
			patience.Reset(drainIdleTimeout)
			last = why
			waits := fmt.Sprintf("%s; the next ordinal waits up to %s", why, drainIdleTimeout)
			r.report(Progress{Kind: Waiting, Step: done, ID: reasons.DrainFirst, Reason: waits})
			r.tells(ctx, reasons.DrainFirst, waits)
		}
		if !r.way.waitForChange(ctx, r.Wake, r.Stop, patience.C) {
			continue
		}
		if passed || r.stopped(ctx) || !r.way.pass() {
			return
		}
		passed = true
		patience.Reset(drainIdleTimeout)
	}
}

// drained reports whether any node is being drained.
func drained(ctx context.Context, w clusters.Pair) bool {
	for _, side := range plans.Sides() {
		if nodes, err := sets.Drained(ctx, w, side); err == nil && len(nodes) > 0 {
			return true
		}
		if w.Plan.OneCluster() {
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

// waitForChange waits for a change of what was read, and reports whether none came in time or the run was
// stopped. Nodes of a large cluster change all the time, so it pauses for minRecheck first.
func (y *drainWay) waitForChange(ctx context.Context, wake *clusters.ChangeSignal, stop <-chan struct{}, limit <-chan time.Time) bool {
	pause := time.NewTimer(minRecheck)
	defer pause.Stop()
	var bell <-chan struct{}
	for {
		select {
		case <-pause.C:
			bell = wake.C()
		case <-bell:
			if y.aside.Outdated(wake.Take()) {
				return false
			}
		case <-limit:
			return true
		case <-stop:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// minRecheck is the minimum time before the next look.
const minRecheck = 2 * time.Second

// meanwhile makes way while a wave waits to begin, which may take long. It reports whether the last wave must
// be looked at once more because of that.
func (r *run) meanwhile(ctx context.Context) bool {
	if r.Drains == nil || !r.last.Step.Op.Tightens() {
		return false
	}
	if _, err := r.Drains.MakeWay(ctx); err != nil {
		r.Report(r.last, err)
		return false
	}
	if r.journal == nil {
		return false
	}
	step, ok := r.arrived()
	return ok && r.journal.Done < step.Seq
}

// Attend tends the plan until ctx ends. If both sides are drained, they take turns.
// complain receives the errors.
func (e *Drains) Attend(ctx context.Context, wake *clusters.ChangeSignal, complain func(error)) {
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
		if e.way.waitForChange(ctx, wake, nil, patience.C) {
			e.way.pass()
			patience.Reset(drainIdleTimeout)
		}
	}
}

// tended calls Tend and returns a panic of it as an error.
func (e *Drains) tended(ctx context.Context) (why string, err error) {
	defer plans.RecoverPanic(&err)
	return e.Tend(ctx)
}

// OneSideOpen reports whether the plan rests where only nodes of one side can be drained, and a process must
// tend the plan before those of the other side can be drained.
func OneSideOpen(p *plans.Plan, j *journal.Journal) bool {
	known := *j
	step, ok := (&Engine{memory: memory{plan: p, journal: &known}}).rests()
	return ok && !j.Ended() && pdb.Contested(p, step)
}

// drainable describes which nodes can be drained while the plan rests, and how to allow the others.
func (e *Drains) drainable(ctx context.Context, j *journal.Journal, holder string, command func(verb string) string) string {
	if state := records.State(e.plan, j, holder); state == plans.StateMoving || state == plans.StateAborting || !OneSideOpen(e.plan, j) {
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
		return fmt.Sprintf("nodes of both sides can be drained, one side at a time: %s lets their evictions through", holder)
	case side == "":
		return fmt.Sprintf("no node with pods of the set can be drained; %s lets drains through", command("names -w"))
	}
	return fmt.Sprintf("nodes of the %s can be drained, those of the %s cannot; %s lets drains of both sides through", side, side.Other(), command("names -w"))
}
