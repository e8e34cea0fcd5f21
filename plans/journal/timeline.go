package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Timeline is what has happened to a plan. It is only reported and decides nothing. Every entry is written
// together with the next write of the journal that is due anyway. Older entries are in a ConfigMap of their own.
type Timeline struct {
	// Begun is the time at which the first process began the plan.
	Begun *metav1.Time `json:"begun,omitempty"`
	// Events lists what has happened to the whole plan, the oldest first.
	Events []Event `json:"events,omitempty"`
	// Waves lists the waves that have arrived, in their order.
	Waves []Wave `json:"waves,omitempty"`
	// Omitted is the number of entries that were dropped because they could not be stored elsewhere.
	Omitted int `json:"omitted,omitempty"`
	// Checks is what the checks before the first write have answered.
	Checks *Checked `json:"checks,omitempty"`
	// Placed, in a journal, has the places that were taken for the wave that has left, or leaves.
	Placed []plans.Placed `json:"placed,omitempty"`
	// Sent, in a journal, counts the writes since the last wave: of objects, and of the journal itself.
	Sent int `json:"sent,omitempty"`
	// Stored, in a journal, reports that the ConfigMap of the timeline may have entries that are not here.
	Stored bool `json:"stored,omitempty"`
}

// EventKind is what an Event is about.
type EventKind string

// The kinds of Event.
const (
	// Requested means that a user has asked for what the event says.
	Requested EventKind = "Requested"
	// PlanBlocked means that the plan was blocked, for the reason that the event says.
	PlanBlocked EventKind = "Blocked"
	// PlanContinued means that a blocked plan continued by itself, since what it waited for has ended.
	PlanContinued EventKind = "Continued"
	// PlanPaused means that a pause has taken effect.
	PlanPaused EventKind = "Paused"
	// RunStopped means that the process was told to end, and where it did.
	RunStopped EventKind = "Stopped"
	// LegEnded means that the plan has reached the outcome that the event says.
	LegEnded EventKind = "Ended"
)

// Event is one entry about the whole plan.
type Event struct {
	// At is when it happened, to the second.
	At metav1.Time `json:"at"`
	// Kind is Requested, Blocked, Continued, Paused, Stopped or Ended.
	Kind EventKind `json:"kind"`
	// ID is that of the reason, with Blocked.
	ID reasons.ID `json:"id,omitempty"`
	// By is the user as the API server names them, or the program that has asked; empty if not known.
	By string `json:"by,omitempty"`
	// What is what was requested, the reason, or the outcome, in words.
	What string `json:"what,omitempty"`
}

// Wave is one wave that has arrived.
type Wave struct {
	// Seq is the number of its step Grow. No two waves of a plan have the same.
	Seq int `json:"seq"`
	// Ordinals are the ordinals of the wave.
	Ordinals plans.Slice `json:"ordinals"`
	// To is the side on which the wave has arrived.
	To plans.Side `json:"to"`
	// Left is when the wave began to leave the other side.
	Left metav1.MicroTime `json:"left"`
	// Took has the seconds of each span, in the order terminate, detach, handOver, attach, ready.
	Took []float64 `json:"took"`
	// Gaps are the times in which no process carried the wave on. They are part of no span.
	Gaps []Gap `json:"gaps,omitempty"`
	// Nodes has the nodes that each ordinal has left and reached, from the lowest ordinal upwards; empty
	// where not known.
	Nodes [][2]string `json:"nodes,omitempty"`
	// Places has the nodes on which the places of the ordinals were taken before they left, from the lowest ordinal upwards;
	// empty where none was taken.
	Places []string `json:"places,omitempty"`
	// Seen says in words what was seen from the places of the ordinals, from the lowest ordinal upwards: what was reached from
	// there, and a clock that is off.
	Seen []string `json:"seen,omitempty"`
	// Epoch is the epoch of the process that has seen the wave arrive.
	Epoch int64 `json:"epoch"`
	// Writes counts what was sent since the wave before: without what a process has sent since its last record and
	// before it died, and twice what was sent before a record whose answer was lost; 0 where it was not counted.
	Writes int `json:"writes,omitempty"`
	// By is the process that has seen the wave arrive.
	By string `json:"by,omitempty"`
}

// Checked is what the checks of a plan have answered.
type Checked struct {
	// At is when the checks were made.
	At metav1.Time `json:"at"`
	// Passed names the checks that found nothing.
	Passed []string `json:"passed,omitempty"`
	// Found lists the findings, at most 16.
	Found []Found `json:"found,omitempty"`
	// Omitted is the number of findings for which there was no room.
	Omitted int `json:"omitted,omitempty"`
}

// Found is one finding of a check that did not prevent the start.
type Found struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// What is the finding in words: the object, what was seen, and what was expected.
	What string `json:"what"`
	// Ignored reports that the plan accepts a finding that would have blocked it.
	Ignored bool `json:"ignored,omitempty"`
}

// maxFound limits the findings that a timeline has, which are at most maxEventBytes each.
const maxFound = 16

// Add adds a finding as far as there is room.
func (c *Checked) Add(f Found) {
	if len(c.Found) == maxFound {
		c.Omitted++
		return
	}
	f.What = cut(f.What)
	c.Found = append(c.Found, f)
}

// Arrived returns the time at which the wave was available again.
func (w Wave) Arrived() time.Time {
	at := w.Left.Add(sumOf(w.Gaps))
	for _, seconds := range w.Took {
		at = at.Add(inDuration(seconds))
	}
	return at
}

// Span returns how long a span took.
func (w Wave) Span(s plans.Span) time.Duration {
	if s == plans.Unattended {
		return sumOf(w.Gaps)
	}
	if k := slices.Index(plans.Spans(), s); k >= 0 && k < len(w.Took) {
		return inDuration(w.Took[k])
	}
	return 0
}

const (
	// maxTimelineBytes is the size from which on the timeline of a journal is moved to its own ConfigMap. A journal
	// is written several times for each wave.
	maxTimelineBytes = 4 << 10
	// hardTimelineBytes is the size that the timeline of a journal never exceeds: the oldest entries are dropped.
	hardTimelineBytes = 32 << 10
	// MaxStoredTimelineBytes is the size that a stored timeline never exceeds. A ConfigMap has at most 1 MiB.
	MaxStoredTimelineBytes = 900 << 10
	// maxEventBytes limits the text of an event.
	maxEventBytes = 512
)

// Record adds an event that happens now.
func (t *Timeline) Record(now time.Time, e Event) {
	e.At, e.By, e.What = metav1.Time{Time: now.UTC().Truncate(time.Second)}, cut(e.By), cut(e.What)
	t.Events = append(slices.Clip(t.Events), e) // never change the slice of the journal that was read
	t.trim(hardTimelineBytes)
}

func (t *Timeline) arrived(w Wave) {
	if slices.ContainsFunc(t.Waves, func(have Wave) bool { return have.Seq == w.Seq }) {
		return
	}
	w.Writes, t.Sent = w.Writes+t.Sent, 0
	t.Waves = append(slices.Clip(t.Waves), w)
	t.trim(hardTimelineBytes)
}

// Full reports whether the timeline should leave the journal.
func (t *Timeline) Full() bool { return t.size() >= maxTimelineBytes }

// Merge returns the entries of both timelines, each once and in their order. It is as large as can be stored.
func (t *Timeline) Merge(later Timeline) Timeline {
	out := Timeline{Begun: cmp.Or(t.Begun, later.Begun), Checks: cmp.Or(t.Checks, later.Checks), Sent: later.Sent, Omitted: t.Omitted + later.Omitted, Events: slices.Clone(t.Events), Waves: slices.Clone(t.Waves)}
	for _, e := range later.Events {
		if !slices.ContainsFunc(t.Events, e.equal) {
			out.Events = append(out.Events, e)
		}
	}
	known := map[int]bool{}
	for _, w := range t.Waves {
		known[w.Seq] = true
	}
	for _, w := range later.Waves {
		if !known[w.Seq] {
			out.Waves = append(out.Waves, w)
		}
	}
	slices.SortStableFunc(out.Events, func(a, b Event) int { return a.At.Compare(b.At.Time) })
	slices.SortStableFunc(out.Waves, func(a, b Wave) int { return cmp.Compare(a.Seq, b.Seq) })
	out.trim(MaxStoredTimelineBytes)
	return out
}

// Emptied returns what stays in the journal when the entries are stored elsewhere.
func (t *Timeline) Emptied() Timeline {
	return Timeline{Begun: t.Begun, Placed: t.Placed, Sent: t.Sent, Stored: true}
}

// Place returns the place that was taken for an ordinal; zero if none was.
func (t *Timeline) Place(ordinal int32) plans.Placed {
	for _, p := range t.Placed {
		if p.Ordinal == ordinal {
			return p
		}
	}
	return plans.Placed{}
}

// PlacesOf returns, for each ordinal of a wave, the node on which its place was taken, and what was seen from there; nil where
// none was, and where nothing was seen.
func (t *Timeline) PlacesOf(wave plans.Slice) (nodes, seen []string) {
	if len(t.Placed) == 0 {
		return nil, nil
	}
	for o := range wave.All() {
		place := t.Place(o)
		nodes, seen = append(nodes, place.Node), append(seen, place.Seen())
	}
	if strings.Join(seen, "") == "" {
		seen = nil
	}
	return nodes, seen
}

// size returns the number of bytes that the timeline takes.
func (t *Timeline) size() int {
	if len(t.Events) == 0 && len(t.Waves) == 0 && t.Checks == nil {
		return 0
	}
	raw, _ := json.Marshal(t) // it has no type that can fail
	return len(raw)
}

// trim drops the oldest entries until the timeline is no larger than limit.
func (t *Timeline) trim(limit int) {
	for t.size() > limit && len(t.Waves)+len(t.Events) > 0 {
		waves, events := (len(t.Waves)+7)/8, (len(t.Events)+7)/8
		t.Waves, t.Events = t.Waves[waves:], t.Events[events:]
		t.Omitted += waves + events
	}
}

func (e Event) equal(other Event) bool {
	return e.At.Equal(&other.At) && e.Kind == other.Kind && e.By == other.By && e.What == other.What
}

// Validate returns the reason why the timeline cannot be that of a plan.
func (t *Timeline) Validate(p *plans.Plan) error {
	if size := t.size(); size > MaxStoredTimelineBytes {
		return fmt.Errorf("timeline has %d bytes, expected at most %d", size, MaxStoredTimelineBytes)
	}
	for _, w := range t.Waves {
		switch {
		case w.Seq < 1 || !isWave(p, w.Ordinals) || !slices.Contains(plans.Sides(), w.To):
			return fmt.Errorf("timeline.waves has %d ordinals from %d at step %d on the side %q, expected 1 to %d of %s, on a side", w.Ordinals.Replicas, w.Ordinals.Start, w.Seq, w.To, p.Window, p.Ordinals())
		case len(w.Took) != len(plans.Spans()) || slices.ContainsFunc(w.Took, func(s float64) bool { return !(s >= 0 && s < 1e9) }):
			return fmt.Errorf("timeline.waves has the spans %v at step %d, expected %d numbers of seconds", w.Took, w.Seq, len(plans.Spans()))
		case len(w.Gaps) > maxGaps || slices.ContainsFunc(w.Gaps, func(g Gap) bool { return !(g.Seconds >= 0 && g.Seconds < 1e9) }):
			return fmt.Errorf("timeline.waves has the gaps %v at step %d, expected at most %d, each with a number of seconds", w.Gaps, w.Seq, maxGaps)
		case len(w.Nodes) > int(w.Ordinals.Replicas):
			return fmt.Errorf("timeline.waves has %d nodes at step %d, expected one for each of %s", len(w.Nodes), w.Seq, w.Ordinals)
		case max(len(w.Places), len(w.Seen)) > int(w.Ordinals.Replicas):
			return fmt.Errorf("timeline.waves has %d places at step %d, expected one for each of %s", max(len(w.Places), len(w.Seen)), w.Seq, w.Ordinals)
		}
	}
	return nil
}

// cut returns one line of printable text of a bounded size.
func cut(text string) string {
	text = plans.Line(text)
	if len(text) <= maxEventBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxEventBytes], "") + " ..."
}
