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
	"github.com/stsmigrate/stsmigrate/internal/engine/muster"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/gates"
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
	// Beside, if set, runs reads that nothing waits for, beside the engine.
	Beside func(read func())
	// Permit is what a wave waits for before it begins. Run releases it at the end.
	Permit *wavelimit.Permit
}

// Engine executes one plan. It is not safe for concurrent use. Any number of engines of one plan, in any
// processes, may run at the same time (S9).
type Engine struct {
	memory

	on    clusters.Clusters
	looks map[plans.Op]plans.Look
	// reads is the cache that the looks read through. It holds what the last look has read.
	reads *clusters.ReadCache
	world sets.Steps
	way   *drainWay
	// Drains lets evictions through between two waves; nil if it does not.
	Drains *Drains

	preparation *preparation
	batch       *batch
	skipRelax   *skipRelax
	ahead       *readAhead
	openBudgets *openBudgets

	checks  wavecheck.Checks
	checked bool // whether checks knows of Checks
	// roll knows how the ordinals were at the last count.
	roll muster.Roll
}

// New returns the engine of a stored plan. It writes nothing. Call TakeOver before the first Advance.
func New(p *plans.Plan, store *records.Store, on clusters.Clusters) *Engine {
	recent, seen := clusters.NewRecent(), &clusters.ReadCache{}
	on = recent.Clients(p, on) // also what fences and opens budgets, so that no look misses a write of this process
	through := seen.Clients(p, on)
	w := sets.Steps{Pair: clusters.Pair{Plan: p, On: through}, Twins: &sets.Twins{}, Twice: &sets.Twice{}}
	asks := gates.New(p, through)
	looks := map[plans.Op]plans.Look{
		plans.Freeze:  sets.InTurn(w.Freeze, dns.Export(p, through)),
		plans.Quiesce: asks.Look,
		plans.Shrink:  w.Shrink,
		plans.Grow:    w.Grow,
		plans.Verify:  asks.Look,
		plans.Retire:  sets.InTurn(sets.Unpin(p, through), w.Retire), // they are pinned if a journal was lost in the middle of a wave
	}
	var e *Engine
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
	for op := range looks {
		if op.Guarded() {
			looks[op] = w.Outside(looks[op])
		}
	}
	e = &Engine{memory: memory{Process: Process{Gates: asks, Recent: recent}, plan: p, store: store}, on: on, looks: looks, reads: seen, world: w, way: way}
	e.preparation = &preparation{memory: &e.memory, look: storage.Prepare(p, through), at: e.moment}
	e.ahead = newReadAhead(e.preparation, on)
	e.openBudgets = &openBudgets{memory: &e.memory, tightened: e.tightened, open: e.ease}
	e.batch = &batch{memory: &e.memory, on: on, look: e.lookAt}
	e.skipRelax = &skipRelax{memory: &e.memory, see: e.see, act: e.act, drained: func(ctx context.Context) bool { return drained(ctx, clusters.Pair{Plan: p, On: on}) }}
	e.Drains = &Drains{memory: &e.memory, on: on, way: way, moment: e.moment, takeOver: e.takeOver}
	// Thaw removes, in this order: the names, the Jobs of gates, the budgets, the copies or their stamps, the
	// retention policy and mark of the sets, and what the controllers copied of that mark.
	looks[plans.Thaw] = sets.InTurn(dns.Remove(p, through, e.quiet), asks.Clear, pdb.Restore(p, through), w.Uncopy, w.ThawLoser, w.ThawWinner, w.UnmarkRevisions)
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

// Advance makes one pass: it looks at the first step that is not known to be finished and sends the writes of
// one look (of a wave, one for each of its volumes), and at most one that prepares the next wave. The intent and the old values of a write are in the journal BEFORE the write is sent (S10),
// and the answer to a write never decides its outcome. An error means that a read or a write failed; the
// caller tries again later.
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
	if more {
		if p, halts, err := e.halts(ctx, step, began); halts || err != nil {
			return p, err
		}
	}
	if p, follows, err := e.skipRelax.turn(ctx, step, more); follows || err != nil {
		return p, err
	}
	switch {
	case !more:
		return e.finish(ctx)
	case !e.permitted(step):
		return e.rest(ctx, Progress{Kind: Waiting, Step: step, ID: reasons.WavesAtLimit, Reason: waitsForPermit, Queued: true})
	}
	return e.turn(ctx, step, began)
}

// turn makes the pass of a step whose turn it is.
func (e *Engine) turn(ctx context.Context, step plans.Step, began bool) (Progress, error) {
	if step.Op.Leaves() {
		e.Gates.Turn()
	}
	if observed, due := e.batch.take(step, began); due {
		return e.send(ctx, step, observed)
	}
	observed, err := e.see(ctx, step, began)
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
		took := e.pass(step, observed)
		return Progress{Kind: Advanced, Step: step, Reason: observed.Reason, Took: took, Forecast: e.forecast(step, took)}, nil
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

// see returns how a step stands. It first checks whether the step may begin. A conflict counts only if a second look,
// with nothing of the first one, sees one too: the first may have put together what was never so at one time, such as
// before and after a write of a former process that arrives late.
func (e *Engine) see(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	observed, err := e.seeOnce(ctx, step, began)
	if err == nil && observed.Standing == plans.Conflict {
		e.Recent.Forget()
		observed, err = e.seeOnce(ctx, step, began)
	}
	e.retainPermit(step, observed, err)
	return observed, err
}

func (e *Engine) seeOnce(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	observed, err := e.barred(ctx, step, began)
	if err != nil || observed.Standing != plans.After {
		return observed, err
	}
	observed, err = e.lookAt(ctx, step, began)
	if err != nil || !unasked(step, began, observed) {
		return observed, err
	}
	if s, err := e.barred(ctx, step, false); err != nil || s.Standing != plans.After {
		return s, err
	}
	return e.lookAt(ctx, step, began)
}

// lookAt looks at a step as the journal has it.
func (e *Engine) lookAt(ctx context.Context, step plans.Step, began bool) (plans.Observation, error) {
	return e.look(ctx, e.moment(e.journal, step, began))
}

// look looks at a step with an empty read cache.
func (e *Engine) look(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	e.reads.Clear()
	e.reads.Volumes = map[string]bool{}
	if m.InFlight() {
		for _, v := range m.Flight.Volumes {
			e.reads.Volumes[v.Name] = true
		}
	}
	m, err := e.world.Found(ctx, m)
	if err != nil {
		return plans.Observation{}, err
	}
	return e.looks[m.Op](ctx, m)
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

func (e *Engine) moment(j *journal.Journal, s plans.Step, began bool) plans.StepContext {
	m := j.At(e.plan, s, began, plans.Stamp{Plan: e.plan.ID, Epoch: e.epoch, Seq: s.Seq})
	m.Follows, m.Unfit = e.skipRelax.follows(s), e.checks.Unfit(s)
	return m
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
		why, err := e.inPlace(ctx)
		if why != "" {
			e.Recent.Forget()
			why, err = e.inPlace(ctx) // seen twice, as in see
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

// inPlace returns why what has moved is not in its place, or "".
func (e *Engine) inPlace(ctx context.Context) (string, error) {
	e.reads.Clear()
	return e.world.InPlace(ctx, e.journal.Leg.Lowest)
}
