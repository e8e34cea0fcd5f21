package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Kind is the kind of result of one Advance.
type Kind string

const (
	// Wrote means that one write was sent. The next look observes its outcome.
	Wrote Kind = "Wrote"
	// Advanced means that a step was observed to be finished.
	Advanced Kind = "Advanced"
	// Waiting means that something is in progress in the cluster.
	Waiting Kind = "Waiting"
	// Paused means that the user asked for a pause and no ordinal is in flight.
	Paused Kind = "Paused"
	// Blocked means that the plan is blocked: the user must act. The reason states why.
	Blocked Kind = "Blocked"
	// Continued means that the plan was blocked only because a wait was too long, and goes on: that has ended.
	Continued Kind = "Continued"
	// Finished means that the leg has ended.
	Finished Kind = "Finished"
	// Stopped means that this process was to end, and no ordinal is in flight.
	Stopped Kind = "Stopped"
)

// Progress is the result of one Advance.
type Progress struct {
	Kind   Kind
	Step   plans.Step
	Reason string
	// ID names the reason, with Waiting, Paused and Blocked.
	ID reasons.ID
	// Outcome is set with Finished.
	Outcome plans.Outcome
	// Again, with Waiting, is when to look again at the latest; 0 means no such time.
	Again time.Duration
	// Left is the time since which a wave has been on neither side; zero while none is.
	Left time.Time
	// Queued, with Waiting, reports that the wave has not begun and waits for its Permit.
	Queued bool
	// Overdue, with Waiting, reports that a wave in flight has waited longer than its timeout. The
	// engine continues to look at it.
	Overdue bool
	// Overtaken, with Blocked, reports that another process has taken the plan over: this process stops, and the
	// plan itself is not blocked.
	Overtaken bool
	// Took, when a wave has arrived, is the length of each span of its downtime.
	Took *Took
	// Came, when a wave has arrived, is how its places were taken; nil if none was.
	Came *Came
	// Unreached, with Waiting for places, is how many of those are not reached from there that must be.
	Unreached int
	// Forecast, when the first wave has arrived, is how long the others will be on neither side, in words.
	Forecast string
	// Downtime, with Finished, is the sum of these spans over the plan; nil if nothing was measured.
	Downtime *journal.Downtime
}

// Took is the length of each span.
type Took map[plans.Span]time.Duration

// Process is what the process that carries a plan out gives to its engine. New sets Gates and Recent.
type Process struct {
	// StopNames, if set, ends the dns.Syncer of this process and returns when its last write is answered. It
	// is called before the names are deleted.
	StopNames func()
	// Now, if set, is the clock that measures how long the budgets are tight and what each span takes.
	Now func() time.Time
	// Holder is the name of this process in reports.
	Holder string
	// CheckWave, if set, runs before each wave and returns what has come up since the plan was made. What bars the wave
	// blocks the plan while nothing is in flight.
	CheckWave func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error)
	// Voided, if set, is called when no earlier answer of CheckWave counts any more, however new it is.
	Voided func()
	// Gates runs the gates of the plan. A plan with gates waits at the first of them until its Prober is set.
	Gates *gates.Keeper
	// Sign is the last sign of life of the process that carried the plan out before; zero if it is not known.
	Sign time.Time
	// Assurance is what the user vouches for when this process takes the plan over.
	Assurance plans.Assurance
	// Checks, if set, is what the checks before the first write have answered, for the timeline.
	Checks *journal.Checked
	// Careful reports that the plan is carried out without any acceleration, for the timeline.
	Careful bool
	// Recent is what all looks read through. Its Keep makes looks that follow one another share what they read.
	Recent *clusters.Recent
	// Beside, if set, runs beside the engine what nothing waits for at first, and returns how to wait for its end.
	Beside func(one func()) (wait func())
	// Permit is what a wave waits for before it begins. Run releases it at the end.
	Permit *wavelimit.Permit
}

// Engine executes one plan. It is not safe for concurrent use. Any number of engines of one plan, in any
// processes, may run at the same time (S9).
type Engine struct {
	memory

	on       clusters.Clusters
	observer *observer
	fencing  *fencing
	easing   *easing
	stopping *stopping
	way      *drainWay
	// Drains lets evictions through between two waves; nil if it does not.
	Drains *Drains

	preparation *preparation
	yielding    *yielding
	batch       *batch
	skipRelax   *skipRelax
	ahead       *readAhead
	openBudgets *openBudgets
}

// New returns the engine of a stored plan. It writes nothing. Call TakeOver before the first Advance.
func New(p *plans.Plan, store *records.Store, on clusters.Clusters) *Engine {
	recent, seen := clusters.NewRecent(), &clusters.ReadCache{}
	on = recent.Clients(p, on) // also what fences and opens budgets, so that no look misses a write of this process
	through := seen.Clients(p, on)
	w := sets.Steps{Pair: clusters.Pair{Plan: p, On: through}, Twins: &sets.Twins{}, Twice: &sets.Twice{}}
	ends := sets.Ending{Pair: w.Pair}
	asks := gates.New(p, through)
	looks := map[plans.Op]plans.Look{
		plans.Freeze:  sets.InTurn(w.Freeze, dns.Export(p, through)),
		plans.Quiesce: asks.Look,
		plans.Shrink:  w.Shrink,
		plans.Grow:    w.Grow,
		plans.Verify:  asks.Look,
	}
	var e *Engine
	ignored := func() []string {
		if e.journal == nil {
			return nil
		}
		return e.journal.Assurances.Ignored
	}
	looks[plans.Retire] = sets.InTurn(dns.Served(p, through, ignored), sets.Unpin(p, through), ends.Retire) // pinned, if a journal was lost in the middle of a wave
	clock := func() (now time.Time) {
		if e.Now != nil {
			now = e.Now()
		}
		return now
	}
	w.Twice.Now = clock
	maps.Copy(looks, storage.Looks(p, through, clock))
	way := newWay(p, on)
	budgets := pdb.Looks(p, through, way.needs(w))
	w.Tighten = budgets[plans.Tighten]
	maps.Copy(looks, budgets)
	looks[plans.Relax] = sets.InTurn(sets.Unpin(p, through), looks[plans.Relax])
	looks[plans.Tighten], looks[plans.Vacate] = w.Tended(clock, w.Steadily, looks[plans.Vacate])
	places := placeholder.Steps{Pair: w.Pair}
	looks[plans.Grow] = places.First(looks[plans.Grow])
	for op := range looks {
		if op.Guarded() {
			looks[op] = w.Outside(looks[op])
		}
	}
	e = &Engine{memory: memory{Process: Process{Gates: asks, Recent: recent}, plan: p, store: store}, on: on, way: way}
	e.observer = &observer{memory: &e.memory, looks: looks, reads: seen, world: w, follows: func(s plans.Step) bool { return e.skipRelax.follows(s) }}
	e.fencing = &fencing{memory: &e.memory, on: on}
	e.easing = &easing{memory: &e.memory, observer: e.observer, on: on, way: way, clear: placeholder.Steps{Pair: clusters.Pair{Plan: p, On: on}}.Clear}
	e.stopping = &stopping{memory: &e.memory, easing: e.easing}
	mine := placing(&e.memory, on, clock)
	e.preparation = &preparation{memory: &e.memory, look: preparing(mine.Through(through)), places: mine, at: e.observer.moment}
	e.yielding = &yielding{memory: &e.memory, look: mine.Tidy, yield: mine.Yield, at: e.observer.moment, refused: placeholder.Refusals{}, clear: e.easing.unplace}
	e.ahead = newReadAhead(e.preparation, on)
	e.openBudgets = &openBudgets{memory: &e.memory, easing: e.easing}
	e.batch = &batch{memory: &e.memory, on: on, look: e.observer.lookAt}
	e.skipRelax = &skipRelax{memory: &e.memory, see: e.observer.see, act: e.act, place: e.place, drained: func(ctx context.Context) bool { return drained(ctx, clusters.Pair{Plan: p, On: on}) }}
	e.Drains = &Drains{memory: &e.memory, on: on, way: way, moment: e.observer.moment, takeOver: e.takeOver}
	// Thaw removes, in this order: the names, the placeholders, the Jobs of gates, the budgets, the copies or their stamps, the
	// retention policy and mark of the sets, and what the controllers copied of that mark.
	looks[plans.Thaw] = sets.InTurn(dns.Remove(p, through, e.quiet), places.Clear, asks.Clear, pdb.Restore(p, through), sets.Copies{Pair: w.Pair}.Uncopy, ends.ThawLoser, ends.ThawWinner, ends.UnmarkRevisions)
	return e
}

// quiet calls StopNames, if set.
func (e *Engine) quiet() {
	if e.StopNames != nil {
		e.StopNames()
	}
}

// Plan returns the plan.
func (e *Engine) Plan() *plans.Plan { return e.plan }

// Continue lets an engine go on in an epoch that another engine of the same process has taken over. It knows nothing
// of what that engine has seen since the journal was last written, and finds it out again. A process is no more
// than its epoch then, which lets a simulation go on from any state that it has reached.
func (e *Engine) Continue(epoch int64) { e.epoch, e.journal, e.passed, e.notes = epoch, nil, 0, nil }

// Without takes accelerations away. It is called before the first Advance.
func (e *Engine) Without(those ...Acceleration) {
	for _, a := range those {
		switch a {
		case Batch:
			e.batch = nil
		case LetDrainsThrough:
			e.Drains = nil
		case OpenBudgets:
			e.openBudgets = nil
		case ReadAhead:
			e.ahead = nil
		case SkipRelax:
			e.skipRelax = nil
		}
	}
}

// Ease opens the budgets again that were tightened for a wave which has not left, and gives the sets that were pinned for it
// their own partitions back, so that nodes can be drained, and templates can roll, while the plan is blocked, stopped, or
// waits for others.
//
// With ordinals in flight it does nothing: the budgets then leave what d leaves.
func (e *Engine) Ease(ctx context.Context) error {
	_, err := e.easing.ease(ctx)
	return err
}

// Advance makes one pass: it looks at the first step that is not known to be finished and sends the writes of one look (of
// a wave, one for each of its volumes), and at most one that prepares the next wave. The intent and the old values of a
// write are in the journal BEFORE the write is sent (S10), and the answer to a write never decides its outcome. An error
// means that a read or a write failed; the caller tries again later.
func (e *Engine) Advance(ctx context.Context) (Progress, error) {
	p, err := e.advance(ctx)
	if gone := new(Rewound); errors.As(err, &gone) {
		return Progress{Kind: Blocked, Step: p.Step, ID: gone.ReasonID(), Reason: gone.Error()}, nil
	}
	return p, err
}

func (e *Engine) advance(ctx context.Context) (Progress, error) {
	if p, sent := e.ahead.took(); sent {
		return p, nil
	}
	if err := e.recall(ctx); err != nil {
		return Progress{}, err
	}
	j := e.journal
	if j.Epoch != e.epoch {
		return Progress{Kind: Blocked, Overtaken: true, ID: reasons.TakenOver, Reason: fmt.Sprintf("another process has taken plan %s over (epoch %d, this one has %d); this one has stopped", e.plan.Name, j.Epoch, e.epoch)}, nil
	}
	j.Touched = nil // this process has fenced these ordinals
	e.told()
	j.Done = max(j.Done, e.passed)
	step, began, more := j.Next(e.plan)
	if !more {
		return e.finish(ctx)
	}
	for _, takes := range []turn{e.stopping.turn, e.yielding.turn, e.skipRelax.turn, e.queue, e.ready} {
		if p, took, err := takes(ctx, step, began); took || err != nil {
			return p, err
		}
	}
	return e.step(ctx, step, began)
}

// turn is a pass that something takes in place of the step that is due. It returns its progress, and reports whether it
// has taken the pass. Those that only save time are nil where the plan is carried out without them.
type turn func(ctx context.Context, step plans.Step, began bool) (Progress, bool, error)

// queue lets a wave wait for its permit.
func (e *Engine) queue(ctx context.Context, step plans.Step, _ bool) (Progress, bool, error) {
	if e.permitted(step) {
		return Progress{}, false, nil
	}
	p, err := e.rest(ctx, Progress{Kind: Waiting, Step: step, ID: reasons.WavesAtLimit, Reason: waitsForPermit, Queued: true})
	return p, true, err
}

// ready sends the write of a step that was looked at together with the one before it.
func (e *Engine) ready(ctx context.Context, step plans.Step, began bool) (Progress, bool, error) {
	observed, due := e.batch.take(step, began)
	if !due {
		return Progress{}, false, nil
	}
	p, err := e.send(ctx, step, observed)
	return p, true, err
}

// step makes the pass of the step that is due.
func (e *Engine) step(ctx context.Context, step plans.Step, began bool) (Progress, error) {
	if step.Op.Leaves() {
		e.Gates.Turn()
	}
	observed, err := e.observer.see(ctx, step, began)
	if err != nil {
		return Progress{Step: step}, err
	}
	return e.act(ctx, step, began, observed)
}

// act acts on how a step stands. A wave that would leave now must be prepared (leaves).
func (e *Engine) act(ctx context.Context, step plans.Step, began bool, observed plans.Observation) (Progress, error) {
	if e.leaves(step, observed) {
		if ready, next, err := e.prepared(ctx, step, began); err != nil || ready.Standing != plans.After {
			e.retainPermit(step, ready, err)
			return e.unprepared(ctx, step, next, ready, err)
		} else if step.Op.Leaves() {
			e.placed(step, ready.Placed)
		}
		if err := e.admits(ctx, step); err != nil {
			return Progress{Step: step}, err
		}
	}
	if p, aged, err := e.aged(ctx, step, observed); aged || err != nil {
		return p, err
	}
	e.clock(step, observed)
	switch observed.Standing {
	case plans.After:
		came, took := e.came(step, observed), e.pass(step, observed)
		return Progress{Kind: Advanced, Step: step, Reason: observed.Reason, Took: took, Came: came, Forecast: e.forecast(step, took)}, nil
	case plans.Conflict:
		return e.block(ctx, step, observed.ID, observed.Reason)
	case plans.During:
		return e.await(ctx, step, began, observed)
	default:
		return e.write(ctx, began, step, observed)
	}
}

// await returns the wait of a step. Meanwhile it may prepare a wave.
func (e *Engine) await(ctx context.Context, step plans.Step, began bool, observed plans.Observation) (Progress, error) {
	if p, sent, err := e.yielding.meanwhile(ctx, step, began); sent || err != nil {
		return p, err
	}
	if p, eased, err := e.openBudgets.turn(ctx, step, observed); eased || err != nil {
		return p, err
	}
	if began {
		if p, did := e.ahead.turn(ctx, step); did {
			return p, nil
		}
		if e.journal == nil {
			return Progress{Step: step}, nil // another process has changed it
		}
	}
	return e.learn(ctx, step, observed)
}

// pass records that a step is finished, with facts worth reporting. No safety rule depends on them.
func (e *Engine) pass(step plans.Step, observed plans.Observation) (took *Took) {
	if observed.Undo.Flight != nil {
		e.note(step, func(j *journal.Journal) { j.Flight = observed.Undo.Flight })
	}
	if step.Op.Loosens() {
		e.Permit.Release()
	}
	e.passed = step.Seq
	if e.journal.Overdue != "" {
		e.note(step, func(j *journal.Journal) { j.Overdue = "" })
	}
	if e.Now == nil {
		return nil
	}
	now := e.Now()
	switch {
	case step.Op.Loosens():
		e.note(step, func(j *journal.Journal) { j.Loosened(now) })
	case step.Op.Enters():
		at := e.since(observed, now)
		e.note(step, func(j *journal.Journal) {
			if t := Took(j.Arrive(at, e.arrival(j, step, observed))); t != nil {
				took = &t
			}
		})
		e.lacking = time.Time{}
	}
	return took
}

// write sends the write of a look, once its intent and the old values it destroys are in the journal. The
// journal must be as it was read, also AFTER the look: a later process may already have removed its stamps,
// and the look would then show no trace of that process (S9). A Save detects this by the journal's version.
func (e *Engine) write(ctx context.Context, began bool, step plans.Step, observed plans.Observation) (Progress, error) {
	e.openBudgets.wrote()
	eased := step.Op.Tightens() && (e.journal.Resting || e.Now != nil && e.journal.TightSince == nil)
	e.ahead.foresee(ctx, step)
	e.batch.lookAhead(ctx, step)
	made := e.ahead.foretold(step)
	over := e.journal.Begun <= e.recorded // also where the plan went back to a step that was recorded as finished (S10)
	if began && !over && e.journal.Recorded(observed.Undo) && !eased {
		if same, err := e.unmoved(ctx); err != nil {
			return Progress{Step: step}, err
		} else if !same {
			return movedOn(step), nil
		}
	} else if err := e.announce(ctx, step, observed); err != nil {
		return Progress{Step: step}, writes.IgnoreAnswers(err)
	}
	p, err := e.send(ctx, step, observed)
	if e.answered == nil {
		e.ahead.sendAlso(ctx, step, made)
	}
	return p, err
}

// send sends the write of a look.
func (e *Engine) send(ctx context.Context, step plans.Step, observed plans.Observation) (Progress, error) {
	since := e.at()
	e.answered = observed.Write(ctx)
	e.sentAway(step, since, e.answered)
	return Progress{Kind: Wrote, Step: step, Reason: observed.Reason}, writes.IgnoreAnswers(e.answered)
}

// announce writes the intent of a step to the journal, with the old values that its write destroys.
func (e *Engine) announce(ctx context.Context, step plans.Step, observed plans.Observation) error {
	e.journal.Begin(e.plan, step, observed.Undo)
	if e.Now != nil && (step.Op.Tightens() || step.Op.Leaves()) {
		e.journal.Tightened(e.Now())
	}
	e.ahead.announces(step)
	if step.Op.Tightens() || step.Op.Leaves() { // the wave is still up
		e.offload(ctx)
	}
	return e.save(ctx)
}

// journalMoved is the reason of a pass without effect, because another process has changed the journal.
const journalMoved = "another process has changed the journal; looking again"

func movedOn(step plans.Step) Progress {
	return Progress{Kind: Wrote, Step: step, Reason: journalMoved}
}

// block records why the plan is blocked. A journal that has changed meanwhile explains what looked foreign;
// then the step is looked at again instead (design rule 6).
func (e *Engine) block(ctx context.Context, step plans.Step, id reasons.ID, reason string) (Progress, error) {
	reason = records.Brief(reason)
	same, err := e.unmoved(ctx)
	if err != nil {
		return Progress{Step: step}, err
	}
	if !same {
		return movedOn(step), nil
	}
	if e.journal.Blocked != reason {
		e.journal.Block(id, reason)
		e.halted()
		e.record(journal.PlanBlocked, id, reason)
		if err := e.save(ctx); err != nil {
			return Progress{Step: step}, writes.IgnoreAnswers(err)
		}
	}
	return Progress{Kind: Blocked, Step: step, ID: id, Reason: reason}, nil
}

// Block blocks the plan for a reason that no look observes, such as a wait that takes too long. It returns an
// error if another process has taken the plan over.
func (e *Engine) Block(ctx context.Context, step plans.Step, id reasons.ID, reason string) (Progress, error) {
	if err := e.recall(ctx); err != nil {
		return Progress{Step: step}, err
	}
	if e.journal.Epoch != e.epoch {
		return Progress{}, errors.New("another process has taken the plan over")
	}
	return e.block(ctx, step, id, reason)
}

// finish ends the leg. After a Move it first checks once more that everything that moved is in its place (S1,
// S12). An Abort and Finalize have checked this before they removed the last mark.
func (e *Engine) finish(ctx context.Context) (Progress, error) {
	outcome := e.journal.Leg.Outcome(e.plan)
	if e.journal.Outcome == outcome && e.journal.Done <= e.recorded {
		return Progress{Kind: Finished, Outcome: outcome, Downtime: e.journal.Downtime}, nil
	}
	if e.journal.Leg.Direction == plans.Move {
		if err := e.easing.unplace(ctx); err != nil {
			return Progress{}, err
		}
		why, err := e.observer.inPlace(ctx)
		if why != "" {
			e.Recent.Forget()
			why, err = e.observer.inPlace(ctx) // seen twice, as in see
		}
		if err != nil {
			return Progress{}, err
		}
		if why != "" {
			last, _ := e.plan.Step(e.journal.Leg, e.journal.Done)
			return e.block(ctx, last, reasons.OrdinalsChanged, why)
		}
	}
	e.journal.Outcome = outcome
	e.journal.Unblock()
	e.record(journal.LegEnded, "", string(outcome))
	if e.Now != nil && e.journal.Ended() {
		e.journal.EndedAt = &metav1.Time{Time: e.Now()}
	}
	if err := e.save(ctx); err != nil {
		return Progress{}, err
	}
	return Progress{Kind: Finished, Outcome: outcome, Downtime: e.journal.Downtime}, nil
}
