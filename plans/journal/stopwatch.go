package journal

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Stopwatch measures the spans of the wave under way. It is only reported and decides nothing: a
// crash loses what was not journaled with the next intent.
type Stopwatch struct {
	// Span is the span that the wave is in: terminate, detach, handOver, attach or ready.
	Span plans.Span `json:"span"`
	// Since is when this span began, or when a process took the wave over in it.
	Since metav1.MicroTime `json:"since"`
	// Took is how long each earlier span of the wave took.
	Took map[plans.Span]metav1.Duration `json:"took,omitempty"`
	// Halted is when the last process ended that carried the wave on. It is missing while one does, and if that one
	// died without a word.
	Halted *metav1.MicroTime `json:"halted,omitempty"`
	// Gaps are the times in which no process carried the wave on, the oldest first.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Gap is a time in which no process carried a wave on.
type Gap struct {
	// From is the last sign of life of the process before.
	From metav1.MicroTime `json:"from"`
	// Seconds is how long it took until a process took the wave over.
	Seconds float64 `json:"seconds"`
}

// Until returns the end of the gap.
func (g Gap) Until() time.Time { return g.From.Add(inDuration(g.Seconds)) }

// maxGaps limits the gaps that are told apart. Those of a wave that is left more often are added to the last one.
const maxGaps = 8

func inDuration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond
}

func inSeconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// sumOf returns how long gaps were together.
func sumOf(gaps []Gap) (sum time.Duration) {
	for _, g := range gaps {
		sum += inDuration(g.Seconds)
	}
	return sum
}

// Leave records that a wave is about to leave. The write that lets it leave may have been refused before: the wave
// has then not left, and is measured from now on.
func (j *Journal) Leave(now time.Time) {
	j.Stopwatch = nil
	j.Enter(plans.Terminating, now)
}

// Stay records that a wave has not left: the write that was to let it leave was refused.
func (j *Journal) Stay() { j.Stopwatch = nil }

// Enter records that a span has begun and the one before it has ended. Within the same span it does nothing.
func (j *Journal) Enter(s plans.Span, now time.Time) {
	if j.Stopwatch == nil {
		if s != plans.Terminating {
			return // its beginning was not observed
		}
		j.Stopwatch = &Stopwatch{Took: map[plans.Span]metav1.Duration{}}
	}
	w := j.Stopwatch
	if w.Span == s {
		return
	}
	w.stop(now)
	w.Span, w.Since = s, metav1.NewMicroTime(now)
}

// stop adds the time since the last record to the span under way.
func (w *Stopwatch) stop(now time.Time) {
	if w.Span == "" {
		return
	}
	took := map[plans.Span]metav1.Duration{} // never change the map of the journal that was read
	for s, d := range w.Took {
		took[s] = d
	}
	took[w.Span] = metav1.Duration{Duration: took[w.Span].Duration + max(now.Sub(w.Since.Time), 0)}
	w.Took = took
}

// Halt records that this process ends while a wave is away.
func (j *Journal) Halt(now time.Time) {
	if j.Stopwatch != nil {
		w, at := *j.Stopwatch, metav1.NewMicroTime(now)
		w.Halted, j.Stopwatch = &at, &w
	}
}

// Resume records that a process takes a wave over. The time since the last sign of the process before belongs to no span:
// that is when it recorded its end, or sign, or else the last record. sign is zero if it is not known.
func (j *Journal) Resume(now, sign time.Time) {
	if j.Stopwatch == nil {
		return
	}
	w := *j.Stopwatch
	if w.Halted != nil {
		sign = w.Halted.Time
	}
	if sign.Before(w.Since.Time) {
		sign = w.Since.Time
	}
	if sign.After(now) {
		sign = now
	}
	w.stop(sign)
	gap := Gap{metav1.NewMicroTime(sign), inSeconds(now.Sub(sign))}
	w.Halted, w.Since = nil, metav1.NewMicroTime(gap.Until()) // now, as exactly as the gap is stored
	w.Gaps = slices.Clone(w.Gaps)
	switch {
	case gap.Seconds == 0:
	case len(w.Gaps) == maxGaps:
		w.Gaps[maxGaps-1].Seconds += gap.Seconds
	default:
		w.Gaps = append(w.Gaps, gap)
	}
	j.Stopwatch = &w
}

// Left returns the time since which a wave has been on neither side; the zero time if no wave is.
func (j *Journal) Left() time.Time {
	w := j.Stopwatch
	if w == nil || j.Outcome != "" {
		return time.Time{}
	}
	return j.left()
}

func (j *Journal) left() time.Time {
	left := j.Stopwatch.Since.Time
	for _, took := range j.Stopwatch.Took {
		left = left.Add(-took.Duration)
	}
	left = left.Add(-sumOf(j.Stopwatch.Gaps))
	return left.UTC().Round(0).Truncate(time.Microsecond) // equal for a decoded journal and one in memory
}

// Until returns how long each span has taken so far, with the time that belongs to none. attended reports that a process
// carries the wave on now.
func (w *Stopwatch) Until(now time.Time, attended bool) map[plans.Span]time.Duration {
	out := map[plans.Span]time.Duration{}
	for s, d := range w.Took {
		out[s] = d.Duration
	}
	end := now
	switch {
	case attended:
	case w.Halted != nil:
		end = w.Halted.Time
	default:
		end = w.Since.Time // the last record of a process that died without a word
	}
	out[w.Span] += max(end.Sub(w.Since.Time), 0)
	if unattended := sumOf(w.Gaps) + max(now.Sub(end), 0); unattended > 0 {
		out[plans.Unattended] = unattended
	}
	return out
}

// came reports whether the wave was seen to come up on a side. One that was never seen so has not left either: the write
// that was to let it leave was refused, or has never arrived.
func (w *Stopwatch) came() bool { return w.Span == plans.Attaching || w.Span == plans.Starting }

// arrive ends the last span. A pod that came up while no process was there has not waited for one: the time up to there
// belongs to the span, and the rest of the gap to no wave.
func (w *Stopwatch) arrive(at time.Time) {
	for n := len(w.Gaps) - 1; n >= 0 && at.Before(w.Gaps[n].Until()); n-- {
		gap := w.Gaps[n]
		w.Gaps, w.Since = slices.Clone(w.Gaps[:n]), gap.From
	}
	w.stop(at)
}

// Arrive records that a wave is available since a time, and returns how long each span took; nil if that is not known, or
// if the wave never left. wave has what the stopwatch does not know of it.
func (j *Journal) Arrive(at time.Time, wave Wave) map[plans.Span]time.Duration {
	if j.Stopwatch == nil {
		return nil
	}
	w := *j.Stopwatch
	wave.Left = metav1.NewMicroTime(j.left())
	j.Stopwatch = nil
	if !w.came() {
		return nil
	}
	w.arrive(at)
	out := map[plans.Span]time.Duration{}
	for _, s := range plans.Spans() {
		out[s] = w.Took[s].Duration
		wave.Took = append(wave.Took, inSeconds(out[s]))
	}
	if wave.Gaps = w.Gaps; len(w.Gaps) > 0 {
		out[plans.Unattended] = sumOf(w.Gaps)
	}
	j.Timeline.arrived(wave)
	j.Downtime = j.Downtime.with(out, wave.Took)
	return out
}
