package view

import (
	"slices"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Migration is a plan as it is shown. What is not known has its zero value, and is left out of the frame.
type Migration struct {
	Plan string
	// Source and Destination name the two sides in full, FromName and ToName in the head of a column.
	Source, Destination         string
	SourceName, DestinationName string
	// State is one word, such as Moving.
	State plans.State
	// Active reports that a process continues the plan by itself.
	Active bool
	// To is the side that the ordinals move to.
	To plans.Side

	// Now is the moment of the frame, and Began the moment at which the plan began.
	Now, Began time.Time
	// Ended, if set, is the moment at which the plan ended: the clock stops there.
	Ended time.Time

	// Ordinals are the rows, highest ordinal first. Arrived counts those that are where they move to.
	Ordinals []Ordinal
	Arrived  int
	// WavesLeft counts the waves that have not arrived, with the one under way.
	WavesLeft int
	// Usual is what the last waves took, at their median, and Known how many waves are known.
	Usual Spans
	Known int
	Wait  Wait

	// Unavailable is how many ordinals are available on neither side; nil if that is not known.
	Unavailable    *int32
	MaxUnavailable int32
	// Budgets are those of both sides, as far as they were read.
	Budgets []Budget
	// TightSince is set while the budgets are tight. TightLongest is the longest time that they were.
	TightSince   time.Time
	TightLongest time.Duration

	// Facts are further lines, in their order.
	Facts []Fact
	// Next is the command that comes next.
	Next string
}

// Ordinal is where one ordinal is.
type Ordinal struct {
	Ordinal             int32
	Source, Destination string
	// Phase is one word: arrived, queued, or the operation under way.
	Phase string
	// Spans are the finished spans of its last move. Running is the span under way, since RunningSince.
	Spans        Spans
	Running      plans.Span
	RunningSince time.Time
	// Since is the moment from which on it has been as it is.
	Since time.Time
}

// The phases of an ordinal of which no wave is under way.
const (
	Arrived = "arrived"
	Queued  = "queued"
)

// Wait is what the plan waits for.
type Wait struct {
	// Pods names the pods that it is about. Reason is a sentence.
	Pods, Reason string
	// Since is when the wait began, and Usual how long such a wait takes.
	Since time.Time
	Usual time.Duration
}

// Budget is the PodDisruptionBudget of a side.
type Budget struct {
	Side string
	// MayGo is how many pods may be evicted now, of the healthy ones.
	MayGo, Healthy int32
}

// Fact is a line of its own.
type Fact struct{ Name, Text string }

// Spans are the lengths of the spans, in the order of plans.Spans.
type Spans [5]time.Duration

// Index returns the position of a span, or -1.
func Index(s plans.Span) int { return slices.Index(plans.Spans(), s) }

// Total returns the sum of the spans.
func (s Spans) Total() (sum time.Duration) {
	for _, d := range s {
		sum += d
	}
	return sum
}

// until returns the spans of an ordinal at a moment, with the one under way.
func (o Ordinal) until(now time.Time) Spans {
	out := o.Spans
	if at := Index(o.Running); at >= 0 && !o.RunningSince.IsZero() {
		out[at] += max(now.Sub(o.RunningSince), 0)
	}
	return out
}

// Elapsed returns how long the plan has been under way, or 0 if that is not known.
func (m Migration) Elapsed() time.Duration {
	end := m.Now
	if !m.Ended.IsZero() {
		end = m.Ended
	}
	if m.Began.IsZero() || end.Before(m.Began) {
		return 0
	}
	return end.Sub(m.Began)
}

// TimeLeft estimates how long the waves that are left will be on neither side: as long as the waves before usually, less
// what the wave under way has taken. It is 0 if there is nothing to estimate from.
func (m Migration) TimeLeft() time.Duration {
	usual := m.Usual.Total()
	if !m.Active || usual == 0 || m.WavesLeft < 1 {
		return 0
	}
	var spent time.Duration
	for _, o := range m.Ordinals {
		if o.Running != "" {
			spent = max(spent, o.until(m.Now).Total())
		}
	}
	return time.Duration(m.WavesLeft)*usual - min(spent, usual)
}
