package engine

import (
	"cmp"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// This file books the time for which a wave is on neither side: to one of its spans, or, while no process carried it on,
// to none of them. No safety rule depends on it.

// clock keeps the stopwatch of the current wave. A step that finds its work done has not taken any time: a wave that never
// left passes all of them so on the way back.
func (e *memory) clock(step plans.Step, observed plans.Observation) {
	if e.Now == nil || !step.Op.Frees() && observed.Standing == plans.After {
		return
	}
	span := cmp.Or(observed.Span, step.Op.Span())
	switch step.Op.Position() {
	case plans.WaveLeaves:
		if observed.Standing == plans.Before { // the write begins the span: no note, as it may not be sent
			e.journal.Leave(e.Now())
		}
		return
	case plans.WaveAway:
		span = step.Op.Span()
	case plans.WaveEnters:
		e.lacking = e.Now()
	case plans.WaveStops:
	case plans.NoWave, plans.WaveStays, plans.WaveArrived:
		return
	}
	if w := e.journal.Stopwatch; span != "" && w != nil && w.Span != span {
		now := e.Now()
		e.note(step, func(j *journal.Journal) { j.Enter(span, now) })
	}
}

// sentAway notes, after the write that lets a wave leave, since when the wave is away. It is not away after an answer that
// refuses the write: a reader of the journal would see an ordinal down that never was.
func (e *memory) sentAway(step plans.Step, since time.Time, answer error) {
	switch {
	case e.Now == nil || !step.Op.Leaves() || e.journal == nil:
	case answer == nil:
		e.note(step, func(j *journal.Journal) { j.Leave(since) })
	case refuses(answer):
		e.note(step, (*journal.Journal).Stay)
	}
}

// refuses reports whether an answer shows that a write was not made. An answer that the server could not finish shows
// nothing.
func refuses(answer error) bool {
	code := apierrors.ReasonForError(answer)
	status, is := answer.(apierrors.APIStatus)
	return code != "" && is && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}

// since returns when a wave that is there now became available. Its pod says so to the second, and by another clock. So
// that counts within what this process knows: the wave was not there when it last looked. A process that has only just
// come knows nothing, and believes the pod.
func (e *memory) since(observed plans.Observation, now time.Time) time.Time {
	at := now
	if said := observed.Available; !said.IsZero() && said.Before(now) {
		at = said
	}
	if at.Before(e.lacking) {
		at = e.lacking
	}
	if w := e.journal.Stopwatch; w != nil && e.lacking.IsZero() && len(w.Gaps) == 0 && w.Since.After(at) {
		at = w.Since.Time
	}
	return at
}

// at returns the time; zero without a clock.
func (e *memory) at() (now time.Time) {
	if e.Now != nil {
		now = e.Now()
	}
	return now
}

// halted records that this process carries the wave that is away no further.
func (e *memory) halted() {
	if e.Now != nil {
		e.journal.Halt(e.Now())
	}
}

// asleep is how much longer than asked a wait lasts at least for a process that was stopped meanwhile, as by a laptop that
// sleeps.
const asleep = 15 * time.Second

// wakes books the time of a wait that has lasted much longer than was asked for to no span.
func (e *memory) wakes(before time.Time, asked time.Duration) {
	if e.Now == nil || e.journal == nil {
		return
	}
	took := clusters.Elapsed(before, e.Now())
	before = before.Round(0) // the monotonic clock may have stopped
	if step, _, more := e.journal.Next(e.plan); more && took > asked+asleep {
		e.note(step, func(j *journal.Journal) { j.Resume(before.Add(took), before) })
	}
}

// Parts returns the spans of a wave that has arrived, in their order; last, if there was any, the time without a process.
func (t Took) Parts() []plans.Span {
	if t[plans.Unattended] > 0 {
		return plans.AllSpans()
	}
	return plans.Spans()
}

// forecast returns what the first wave lets expect of the others: it corrects the estimate of the plan.
func (e *memory) forecast(step plans.Step, took *Took) string {
	if took == nil || e.journal.Downtime == nil || e.journal.Downtime.Waves != 1 {
		return ""
	}
	return e.journal.Downtime.Forecast(wavesLeft(e.plan, e.journal.Leg, step.Seq))
}

// wavesLeft counts the waves of a leg that arrive after a step.
func wavesLeft(p *plans.Plan, l plans.Leg, done int) (left int) {
	for seq := done + 1; ; seq++ {
		switch step, more := p.Step(l, seq); {
		case !more:
			return left
		case step.Op.Enters():
			left++
		}
	}
}
