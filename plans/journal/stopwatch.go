package journal

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Stopwatch measures the spans of the wave under way. It is only reported and decides nothing: a
// crash loses what was not journaled with the next intent.
type Stopwatch struct {
	// Span is the span that the wave is in: terminate, detach, handOver, attach or ready.
	Span plans.Span `json:"span"`
	// Since is when this span began.
	Since metav1.MicroTime `json:"since"`
	// Took is how long each earlier span of the wave took.
	Took map[plans.Span]metav1.Duration `json:"took,omitempty"`
}

// Downtime sums the spans of all waves that have arrived.
type Downtime struct {
	// Waves is how many waves have arrived.
	Waves int `json:"waves"`
	// Total is how long each span took, over all waves together.
	Total map[plans.Span]metav1.Duration `json:"total"`
	// Longest is how long each span took at most.
	Longest map[plans.Span]metav1.Duration `json:"longest"`
}

// Leave records that a wave is about to leave. The write that lets it leave may have been refused before: the wave
// has then not left, and is measured from now on.
func (j *Journal) Leave(now time.Time) {
	j.Stopwatch = nil
	j.Enter(plans.Terminating, now)
}

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
	return left.UTC().Round(0).Truncate(time.Microsecond) // equal for a decoded journal and one in memory
}

// Arrive records that a wave is available, and returns how long each span took; nil if that is not known. wave has
// what the stopwatch does not know of it.
func (j *Journal) Arrive(now time.Time, wave Wave) map[plans.Span]time.Duration {
	w := j.Stopwatch
	if w == nil {
		return nil
	}
	wave.Left = metav1.NewMicroTime(j.left())
	w.stop(now)
	for _, s := range plans.Spans() {
		wave.Took = append(wave.Took, w.Took[s].Round(time.Millisecond).Seconds())
	}
	j.Timeline.arrived(wave)
	j.Stopwatch = nil
	next := &Downtime{Waves: 1, Total: map[plans.Span]metav1.Duration{}, Longest: map[plans.Span]metav1.Duration{}}
	if j.Downtime != nil {
		next.Waves = j.Downtime.Waves + 1
	}
	out := map[plans.Span]time.Duration{}
	for _, s := range plans.Spans() {
		d := w.Took[s].Duration
		out[s] = d
		total, longest := d, d
		if was := j.Downtime; was != nil {
			total, longest = total+was.Total[s].Duration, max(longest, was.Longest[s].Duration)
		}
		next.Total[s], next.Longest[s] = metav1.Duration{Duration: total}, metav1.Duration{Duration: longest}
	}
	j.Downtime = next
	return out
}

// Mean returns how long a span took on average.
func (d *Downtime) Mean(s plans.Span) time.Duration {
	return d.Total[s].Duration / time.Duration(max(d.Waves, 1))
}

// String returns one line for the user.
func (d *Downtime) String() string {
	var parts []string
	var mean time.Duration
	for _, s := range plans.Spans() {
		mean += d.Mean(s)
		parts = append(parts, fmt.Sprintf("%s %.2f s (longest %.2f)", s, d.Mean(s).Seconds(), d.Longest[s].Seconds()))
	}
	return fmt.Sprintf("%.2f s on neither side on average: %s", mean.Seconds(), strings.Join(parts, ", "))
}

// DownSeconds is how long the waves were on neither side, in seconds by span.
type DownSeconds struct {
	Waves   int                    `json:"waves"`          // Waves is how many waves have arrived.
	Total   map[plans.Span]float64 `json:"totalSeconds"`   // Total is how long each span took, over all waves together.
	Longest map[plans.Span]float64 `json:"longestSeconds"` // Longest is how long each span took at most.
}

// InSeconds returns the downtime in seconds, or nil if nothing was measured.
func (d *Downtime) InSeconds() *DownSeconds {
	if d == nil {
		return nil
	}
	out := &DownSeconds{Waves: d.Waves, Total: map[plans.Span]float64{}, Longest: map[plans.Span]float64{}}
	for s, took := range d.Total {
		out.Total[s] = took.Seconds()
	}
	for s, took := range d.Longest {
		out.Longest[s] = took.Seconds()
	}
	return out
}
