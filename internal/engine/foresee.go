package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// foreseen is what the looks at the wave after the one that is handed over have seen: one look for each ordinal.
type foreseen struct {
	reserve plans.Step // of that wave
	since   time.Time  // when the looks began
	lock    sync.Mutex
	parts   []plans.Observation
}

// readAhead reads what the next wave is looked at for while a wave is handed over, and prepares it while that one comes up.
// Without one, a wave is prepared when it is about to leave.
type readAhead struct {
	*preparation

	on clusters.Clusters
	// meanwhile looks during a step that waits for something else, and reads through aside, so that what the step waits for
	// is not forgotten.
	meanwhile plans.Look
	aside     *clusters.ReadCache
	left      int // the Seq of the Reserve whose wave is left to Shrink, or is prepared
	seen      *foreseen
	// besides is the progress of a write that was sent together with another one.
	besides *Progress
	sending []func() // wait for what is being sent
	// busy reports that a write is being sent beside the engine, and failed that the last one has failed.
	busy, failed atomic.Bool
}

func newReadAhead(of *preparation, on clusters.Clusters) *readAhead {
	aside := &clusters.ReadCache{}
	return &readAhead{preparation: of, on: on, meanwhile: preparing(of.places.Through(aside.Clients(of.plan, on))), aside: aside}
}

// send sends a write that nothing waits for beside the engine, which looks at its step meanwhile. It was due when the
// journal was last known to be unchanged: that it may arrive late is no other case than a process that dies while it
// sends (S9).
func (p *readAhead) send(ctx context.Context, write func(context.Context) error) {
	p.busy.Store(true)
	one := func() {
		var err error
		defer func() { p.failed.Store(err != nil); p.busy.Store(false) }()
		defer plans.RecoverPanic(&err)
		err = write(ctx)
	}
	if p.Beside == nil {
		one()
		return
	}
	p.sending = append(p.sending, p.Beside(one))
}

// wait waits for what is being sent.
func (p *readAhead) wait() {
	if p == nil {
		return
	}
	for _, ended := range p.sending {
		ended()
	}
	p.sending = nil
}

// took returns the progress of a write that was sent together with another one, once.
func (p *readAhead) took() (sent Progress, was bool) {
	if p == nil || p.besides == nil {
		return sent, false
	}
	sent, p.besides = *p.besides, nil
	return sent, true
}

// forget drops what was seen.
func (p *readAhead) forget() {
	if p != nil {
		p.seen = nil
	}
}

// announces names the wave that is prepared during a step in the journal, with the intent of that step (S10).
func (p *readAhead) announces(step plans.Step) {
	if p == nil {
		return
	}
	if next, may := p.following(step); may && !step.Op.Leaves() {
		p.journal.Prepared = &next.Ordinals
	}
}

// foresee reads what the wave after the one of a step will be looked at for, while that one is handed over. It decides
// nothing: the looks that follow find the answers among the recent ones, or read anew. Only its first write may be sent
// together with Grow (foretold).
func (p *readAhead) foresee(ctx context.Context, step plans.Step) {
	if p == nil || p.Beside == nil || !step.Op.GivesUp() || len(p.plan.Moved()) == 0 || p.journal == nil || p.journal.Paused {
		return
	}
	for seq := step.Seq + 1; ; seq++ {
		next, more := p.plan.Step(p.journal.Leg, seq)
		switch {
		case !more || next.Op.Closes():
			return
		case next.Op.TakesOver() && next.Ordinals != step.Ordinals:
			seen := &foreseen{reserve: next}
			if p.Now != nil {
				seen.since = p.Now()
			}
			p.seen = seen
			for o := range next.Ordinals.All() { // side by side: a wave of three takes no longer than a wave of one
				m := plans.StepContext{Step: next, Stamp: plans.Stamp{Plan: p.plan.ID, Epoch: p.epoch, Seq: p.journal.Begun}}
				m.Ordinals = plans.Slice{Start: o, Replicas: 1}
				p.Beside(func() { seen.look(ctx, p.plan, p.on, m) })
			}
			return
		}
	}
}

// look looks at one ordinal. It does not write.
func (f *foreseen) look(ctx context.Context, p *plans.Plan, on clusters.Clusters, m plans.StepContext) {
	var ignored error
	defer plans.RecoverPanic(&ignored)
	aside := &clusters.ReadCache{}
	aside.Clear()
	through := aside.Clients(p, on)
	look := storage.Prepare(p, through)
	if !storage.Prepares(p) {
		look = storage.Departing(p, through)
	}
	if observed, err := look(ctx, m); err == nil {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.parts = append(f.parts, observed)
	}
}

// foretold returns the first write that prepares the wave after that of a Grow, if it was foreseen a moment ago. Its
// looks were made BEFORE the intent of Grow is written, which also names that wave, and finds a journal that no other
// process has changed (S9, S10).
func (p *readAhead) foretold(grow plans.Step) (made plans.Observation) {
	if p == nil {
		return made
	}
	f := p.seen
	if f == nil || !grow.Op.Enters() {
		return made
	}
	p.seen = nil
	next, may := p.following(grow)
	if !may || next != f.reserve || p.Now != nil && !clusters.Within(clusters.FreshFor, f.since, p.Now()) {
		return made
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if s := plans.Together(f.parts); s.Standing == plans.Before && len(f.parts) == int(next.Ordinals.Replicas) {
		made = s
	}
	return made
}

// sendAlso sends a write that was foretold, right after the one of Grow.
func (p *readAhead) sendAlso(ctx context.Context, grow plans.Step, made plans.Observation) {
	if made.Write == nil {
		return
	}
	next, may := p.following(grow)
	if !may || p.journal.Prepared == nil || *p.journal.Prepared != next.Ordinals {
		return
	}
	p.besides = &Progress{Kind: Wrote, Step: next, Reason: made.Reason}
	p.send(ctx, made.Write)
}

// turn prepares a wave during the wait of a step. It sends at most one write, and reports whether it did. Whatever is
// in the way is left to Shrink, which reports it. The order must hold: the wave is in the journal, with the intent of
// Tighten or Grow, BEFORE anything of it is made (S10), and the journal is unchanged after the look (S9).
func (p *readAhead) turn(ctx context.Context, step plans.Step) (Progress, bool) {
	if p == nil {
		return Progress{}, false
	}
	next, may := p.following(step)
	if p.failed.Swap(false) {
		p.left = next.Seq
	}
	if !may || p.busy.Load() || p.left == next.Seq || p.journal.Prepared == nil || *p.journal.Prepared != next.Ordinals {
		return Progress{}, false
	}
	p.aside.Clear()
	if due, err := p.preparation.places.Due(ctx, p.of(step)); err != nil || due != "" {
		return Progress{}, false // its room may be what it waits for (S28)
	}
	observed, err := p.meanwhile(ctx, p.of(next))
	if err != nil || observed.Standing != plans.Before {
		p.left = next.Seq
		return Progress{}, false
	}
	if same, err := p.unmoved(ctx); err != nil || !same {
		return Progress{}, false
	}
	p.send(ctx, observed.Write)
	return Progress{Kind: Wrote, Step: next, Reason: observed.Reason}, true
}
