package engine

import (
	"context"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// memory is what this process knows of the journal of its plan, with notes for it, between two writes of the journal.
type memory struct {
	Process

	plan  *plans.Plan
	store *records.Store
	epoch int64
	// journal is the journal as last read or written, at the given version. It is nil when it must be read
	// again: after a long wait, and whenever another writer may have written it. It is never trusted for a
	// write: each write follows a Save or a read that finds the version unchanged.
	journal   *journal.Journal
	version   records.Version
	recorded  int // Done as it is stored
	uncounted int // writes that were sent and that no stored journal counts yet
	begun     int // Begun as this process has last seen it stored
	// passed is the last step observed as finished. It runs ahead of the journal's Done, which is written
	// together with the next intent. After a crash the looks find it out again.
	passed int
	notes  []note // since the journal was last written
	// telling reports that the journal says what this process waits for now (tells).
	telling bool
	// lacking is when this process last saw that the wave under way was not available yet; zero if it did not.
	lacking time.Time
	// finishing reports that this process begins no more waves, and ends when no ordinal is in flight.
	finishing bool
	// flying reports that ordinals may be in flight, as far as the last pass knows.
	flying bool
	// answered is the error of the last write. It only explains a write without effect; no look uses it.
	answered error
}

// note is a change of the journal that reports on a wave, noted at the step of that number. It is written
// together with the next intent. No safety rule depends on it.
type note struct {
	seq int
	put func(*journal.Journal)
}

// note applies a note to the known journal. recall applies it once more if the journal is read again
// before the note was written.
func (e *memory) note(step plans.Step, put func(*journal.Journal)) {
	put(e.journal)
	e.notes = append(e.notes, note{step.Seq, put})
}

// recall reads the journal unless it is known. It applies again the notes since the last write, unless
// they were written after all.
func (e *memory) recall(ctx context.Context) (err error) {
	if e.journal != nil {
		return nil
	}
	if e.journal, e.version, err = e.store.Journal(ctx, e.plan); err != nil {
		return err
	}
	if err := e.goneBack(e.journal); err != nil {
		e.journal = nil
		return err
	}
	if e.journal.Epoch == e.epoch {
		e.begun = e.journal.Begun
	}
	e.recorded = e.journal.Done
	for _, n := range e.notes {
		if n.seq > e.recorded && e.journal.Epoch == e.epoch {
			n.put(e.journal)
		}
	}
	return nil
}

// save writes the journal. After any error the journal is read again, since it may or
// may not have been written.
func (e *memory) save(ctx context.Context) error {
	e.uncounted += e.Recent.Sent() + 1
	if e.Now != nil {
		e.journal.Timeline.Sent += e.uncounted
	}
	if e.journal.Done < e.recorded { // what was finished has begun, also where the plan goes back: stamps may have its number
		e.journal.Begun = max(e.journal.Begun, e.recorded)
	}
	version, err := e.store.Save(ctx, e.journal, e.version)
	e.answered = err
	if err != nil {
		e.journal = nil
		return err
	}
	e.uncounted = 0
	e.begun = e.journal.Begun
	e.version, e.recorded, e.notes = version, e.journal.Done, nil
	return nil
}

// unmoved reports whether the stored journal still has the known version.
func (e *memory) unmoved(ctx context.Context) (bool, error) {
	_, now, err := e.store.Journal(ctx, e.plan)
	if err != nil || now != e.version {
		e.journal = nil
	}
	return now == e.version, err
}

// rest returns a wait. Between two waves it first records that the last wave is over: otherwise a reader of
// the journal would see that wave still under way, and its budgets tight.
func (e *memory) rest(ctx context.Context, p Progress) (Progress, error) {
	if !begins(e.journal, p.Step) || e.journal.Done <= e.recorded {
		return p, nil
	}
	err := e.save(ctx)
	switch {
	case err == nil:
		return p, nil
	case writes.IgnoreAnswers(err) == nil:
		return movedOn(p.Step), nil
	}
	return Progress{Step: p.Step}, err
}

// learn returns the wait of a look, and keeps what the look has proven and cannot prove again later. Before a
// wait for a node or a disk, which may outlive the node, the proof is written at once, as is the cluster that is asked
// about. While a pod terminates, the next write carries it.
func (e *memory) learn(ctx context.Context, step plans.Step, observed plans.Observation) (Progress, error) {
	asks := e.journal.Asks(step, observed.Undo.Asks)
	if proven := observed.Undo.Flight; proven != nil && !e.journal.Recorded(observed.Undo) {
		e.note(step, func(j *journal.Journal) { j.Flight = proven })
		asks = asks || observed.Span == plans.Detaching
	}
	if asks {
		switch err := e.save(ctx); {
		case err == nil:
		case writes.IgnoreAnswers(err) == nil:
			return movedOn(step), nil
		default:
			return Progress{Step: step}, err
		}
	}
	return e.rest(ctx, Progress{Kind: Waiting, Step: step, ID: observed.ID, Reason: observed.Reason, Again: observed.Again})
}

// told forgets what a process has told, unless it still waits for that. The next write of the journal has it.
func (e *memory) told() {
	if !e.telling {
		e.journal.Waiting = ""
	}
}

// aloft returns the step at which the plan is, and whether ordinals may be on neither side there.
func (e *memory) aloft() (plans.Step, bool) {
	j := *e.journal
	j.Done = max(j.Done, e.passed)
	step, _, more := j.Next(e.plan)
	return step, more && j.Wave(step).Away
}

// hurry marks requests as urgent from the moment when the budgets are tight until they are open again.
// Requests before a wave, above all its checks, are not urgent: so no more waves begin than the request limit
// lets through without delay.
func (e *memory) hurry(ctx context.Context) context.Context {
	if e.journal != nil && e.journal.TightSince != nil {
		return clusters.Urgent(ctx)
	}
	return ctx
}

// arrived returns the Relax of the last wave, and reports whether that wave has
// arrived and no other has begun.
func (e *memory) arrived() (plans.Step, bool) {
	e.journal.Done = max(e.journal.Done, e.passed)
	s, ok := e.plan.Step(e.journal.Leg, e.journal.Begun)
	return s, ok && s.Op.Loosens() && e.journal.Done >= s.Seq-1
}

// rests returns the step that determines the budgets of a plan which no process carries: the Relax of the
// wave that has arrived last, or the Tighten of a wave that has not left. It reports whether there is one.
func (e *memory) rests() (plans.Step, bool) {
	if step, ok := e.arrived(); ok {
		return step, true
	}
	step, began, more := e.journal.Next(e.plan)
	return step, more && began && step.Op.Tightens()
}

// flies remembers, after each pass, whether ordinals may be in flight: an API server that does not answer must not keep a
// run from ending that has nothing in flight.
func (e *memory) flies(j *journal.Journal) {
	if j != nil {
		step, _, more := j.Next(e.plan)
		e.flying = more && j.Wave(step).Away
	}
}

// StepOf returns the name of a step for users: the pods and the operation, or, for a step of the whole
// plan, the operation alone.
func (e *memory) StepOf(s plans.Step) string {
	if s.Whole() {
		return string(s.Op)
	}
	return e.plan.Pods(s.Ordinals) + " " + string(s.Op)
}
