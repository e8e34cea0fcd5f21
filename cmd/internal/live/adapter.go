package live

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/view"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Status is what was read of a plan at one moment.
type Status struct {
	View    *engine.View
	Journal *journal.Journal
	At      time.Time
}

// Migration returns a plan as it is drawn. What was learned from earlier moments is in h.
func Migration(p *plans.Plan, s Status, h *History) view.Migration {
	v, j := s.View, s.Journal
	m := view.Migration{
		Plan: p.Name, Source: place(p.Source), Destination: place(p.Destination), State: v.State, Active: v.Active(),
		To: plans.Destination, Now: s.At, Unavailable: v.Unavailable, MaxUnavailable: v.MaxUnavailable,
		Facts: facts(v), Next: v.Next,
	}
	m.SourceName, m.DestinationName = p.Source.Context, p.Destination.Context
	if p.OneCluster() || m.SourceName == m.DestinationName {
		m.SourceName, m.DestinationName = p.Source.Namespace, p.Destination.Namespace
	}
	if j.Leg.Direction == plans.Abort {
		m.To = plans.Source
	}
	if j.EndedAt != nil {
		m.Ended = j.EndedAt.Time
	}
	if v.Timeline.Begun != nil {
		m.Began = v.Timeline.Begun.Time
	}
	if v.BudgetsTightSince != nil {
		m.TightSince = v.BudgetsTightSince.Time
	}
	for _, b := range v.Budgets {
		name := map[plans.Side]string{plans.Source: m.SourceName, plans.Destination: m.DestinationName}[b.Side]
		m.Budgets = append(m.Budgets, view.Budget{Side: name, MayGo: b.MayGo, Healthy: b.Healthy})
	}
	m.TightLongest = time.Duration(v.BudgetsTightLongest * float64(time.Second))
	if j.Downtime != nil {
		for i, span := range plans.Spans() {
			m.Usual[i] = j.Downtime.Usual(span)
		}
		m.Known = j.Downtime.Waves
	}
	left := 0
	m.Ordinals, m.Arrived, left = rows(p, s, h)
	m.WavesLeft = (left + int(p.Window) - 1) / int(max(p.Window, 1))
	m.Wait = waiting(p, s, h, m.Usual)
	return m
}

// place names one side for a person.
func place(r plans.Ref) string {
	if r.Context == "" {
		return r.Namespace
	}
	return r.Namespace + "@" + r.Context
}

// underWay returns the step under way, and whether it belongs to a wave that has begun.
func underWay(p *plans.Plan, s Status) (step plans.Step, begun bool) {
	step, began, more := s.Journal.Next(p)
	return step, more && step.Moves() && (began || !step.Op.Boundary() || s.View.Active())
}

// rows returns the ordinals, how many have arrived, and how many are left. One that could not be read is on no side.
func rows(p *plans.Plan, s Status, h *History) (out []view.Ordinal, arrived, left int) {
	step, begun := underWay(p, s)
	to, arrives := plans.Destination, "moved"
	if s.Journal.Leg.Direction == plans.Abort {
		to, arrives = plans.Source, "on the source"
	}
	for _, v := range s.View.Ordinals {
		o := view.Ordinal{Ordinal: v.Ordinal, Source: v.Source, Destination: v.Destination, Phase: view.Queued, Since: h.since[v.Ordinal]}
		flies := begun && step.Ordinals.Has(v.Ordinal) && !step.Op.Loosens()
		here := v.Phase == arrives
		if step.Moves() && step.Ordinals.Has(v.Ordinal) { // its phase is then the operation, not a place
			here = step.Op.Loosens()
		}
		switch {
		case flies:
			o.Phase = string(step.Op)
			flight(&o, s.Journal, s.View.Holder != "", s.At)
		case here:
			o.Phase = view.Arrived
			arrival(&o, to, s.View.Timeline)
			arrived++
		case to == plans.Source || v.Ordinal >= s.Journal.Leg.Lowest:
			left++
		}
		if flies {
			left++
		}
		out = append(out, o)
	}
	return out, arrived, left
}

// arrival fills in when an ordinal has arrived on its side, and how long each span took.
func arrival(o *view.Ordinal, to plans.Side, t journal.Timeline) {
	for _, w := range t.Waves { // the last one counts
		if w.To != to || !w.Ordinals.Has(o.Ordinal) {
			continue
		}
		for i, span := range plans.Spans() {
			o.Spans[i] = w.Span(span)
		}
		if o.Since.IsZero() {
			o.Since = w.Arrived()
		}
	}
}

// flight fills in the spans of an ordinal of the wave under way.
func flight(o *view.Ordinal, j *journal.Journal, attended bool, now time.Time) {
	o.Spans = view.Spans{}
	w := j.Stopwatch
	if w == nil || j.Outcome != "" || j.Flight == nil || !j.Flight.Ordinals.Has(o.Ordinal) {
		return
	}
	if o.Running = w.Span; attended {
		o.RunningSince = w.Since.Time
	}
	took := w.Until(w.Since.Time, true)
	if !attended {
		took = w.Until(now, false) // what no process does belongs to no span
	}
	for i, span := range plans.Spans() {
		o.Spans[i] = took[span]
	}
}

// waiting returns what the plan waits for, since when, and how long that usually takes.
func waiting(p *plans.Plan, s Status, h *History, usual view.Spans) view.Wait {
	if s.View.Reason == "" {
		return view.Wait{}
	}
	w := view.Wait{Reason: reasons.Tagged(s.View.ReasonID, s.View.Reason)}
	step, begun := underWay(p, s)
	if !begun {
		return w
	}
	w.Pods, w.Since = p.Pods(step.Ordinals), h.reasonSince
	if watch := s.Journal.Stopwatch; watch != nil && s.Journal.Flight != nil && s.Journal.Flight.Ordinals == step.Ordinals {
		w.Since = watch.Since.Time
		if at := view.Index(watch.Span); at >= 0 {
			w.Usual = usual[at]
		}
	}
	return w
}

// facts are the lines that are not about one ordinal.
func facts(v *engine.View) []view.Fact {
	process := ""
	if v.Holder != "" {
		process = v.Holder + ", epoch " + strconv.FormatInt(v.Epoch, 10)
	}
	var out []view.Fact
	for _, side := range plans.Sides() {
		out = append(out, view.Fact{Name: "unseen", Text: v.Unseen[side]})
	}
	out = append(
		out,
		view.Fact{Name: "down", Text: downOf(v)}, view.Fact{Name: "places", Text: placesOf(v)},
		view.Fact{Name: "overdue", Text: reasons.Tagged(v.OverdueID, v.Overdue)}, view.Fact{Name: "gates", Text: v.Gates}, view.Fact{Name: "drains", Text: v.Drains},
		view.Fact{Name: "added", Text: v.Added}, view.Fact{Name: "differs", Text: strings.Join(v.Differs, "; ")},
		view.Fact{Name: "names", Text: v.Names}, view.Fact{Name: "vouched", Text: strings.Join(v.Assurances, "; ")},
		view.Fact{Name: "process", Text: cmp.Or(process, v.Orchestrator)},
	)
	return slices.DeleteFunc(out, func(f view.Fact) bool { return f.Text == "" })
}

// History is what was seen of a plan before.
type History struct {
	since       map[int32]time.Time
	places      map[int32][3]string
	reason      string
	reasonSince time.Time
}

// NewHistory returns a History that knows nothing.
func NewHistory() *History {
	return &History{since: map[int32]time.Time{}, places: map[int32][3]string{}}
}

// Learn takes in one moment.
func (h *History) Learn(s Status) {
	for _, o := range s.View.Ordinals {
		place := [3]string{o.Source, o.Destination, o.Phase}
		if was, known := h.places[o.Ordinal]; known && was != place {
			h.since[o.Ordinal] = s.At
		}
		h.places[o.Ordinal] = place
	}
	if s.View.Reason != h.reason {
		h.reason, h.reasonSince = s.View.Reason, s.At
	}
}
