package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// Kind is the kind of a Report in its JSON form.
const Kind = "Report"

// Report is what a plan has done so far. Its JSON form is stable within an API version.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Plan is the name of the plan.
	Plan string `json:"plan"`
	// ID is the ID of the plan.
	ID string `json:"id"`
	// Hash is the hash of the plan.
	Hash string `json:"hash"`
	// Source is the set that moves.
	Source plans.Ref `json:"source"`
	// Destination is the place that the set moves to.
	Destination plans.Ref `json:"destination"`
	// Direction is the last direction of the plan: Move, Abort or Finalize.
	Direction plans.Direction `json:"direction"`
	// Outcome is Moved, Split, Finalized or Aborted; empty while the plan is under way.
	Outcome plans.Outcome `json:"outcome,omitempty"`
	// Blocked is the reason why the plan is blocked now.
	Blocked string `json:"blocked,omitempty"`
	// Ordinals is how many ordinals the plan moves.
	Ordinals int32 `json:"ordinals"`
	// MaxUnavailable is how many ordinals may be unavailable at once, over both sides together.
	MaxUnavailable int32 `json:"maxUnavailable"`
	// Window is how many ordinals move together.
	Window int32 `json:"window"`
	// Budget names the PodDisruptionBudgets of both sides.
	Budget plans.Budget `json:"budget"`
	// Made says who made the plan, and when; missing if that is not known.
	Made *plans.Made `json:"made,omitempty"`
	// Begun is when the first process began the plan; missing before.
	Begun *metav1.Time `json:"begun,omitempty"`
	// Ended is when the plan was finalized or aborted; missing before.
	Ended *metav1.Time `json:"ended,omitempty"`
	// Ignored names the checks whose findings were accepted.
	Ignored []string `json:"ignored,omitempty"`
	// Vouched lists the facts for which users have vouched, in words.
	Vouched []string `json:"vouched,omitempty"`
	// Waves lists the waves in their order, with the one that is under way.
	Waves []Wave `json:"waves"`
	// Checks is what the checks before the first write have answered.
	Checks *journal.Checked `json:"checks,omitempty"`
	// Writes counts what was sent for the waves that have arrived.
	Writes int `json:"writes,omitempty"`
	// Away is how many ordinals were between the sides, from each time on.
	Away []Level `json:"away"`
	// Peak is the largest number of ordinals that were between the sides at once.
	Peak int32 `json:"peak"`
	// Spans has the figures of each span over all waves, in the order of the spans.
	Spans []Span `json:"spans"`
	// Events lists what has happened to the whole plan, the oldest first.
	Events []journal.Event `json:"events"`
	// Unrecorded lists ordinals that are part of the direction and have no record. An ordinal that has not moved yet
	// has none either.
	Unrecorded []int32 `json:"unrecorded,omitempty"`
	// Omitted is the number of entries that were dropped from the timeline for lack of room.
	Omitted int `json:"omitted,omitempty"`
	// Untold is the reason why a part of the timeline could not be read.
	Untold string `json:"untold,omitempty"`

	text string // of the plan
}

// Wave is one wave: an ordinal, or several that moved together.
type Wave struct {
	// Pods are the pods of the wave, such as web-4 or web-2..4.
	Pods string `json:"pods"`
	// Ordinals are the ordinals of the wave, the lowest first.
	Ordinals []int32 `json:"ordinals"`
	// To is the side that the wave moves to.
	To plans.Side `json:"to"`
	// Left is when the wave began to leave.
	Left metav1.MicroTime `json:"left"`
	// Arrived is when the wave was available again; missing while it is away.
	Arrived *metav1.MicroTime `json:"arrived,omitempty"`
	// Seconds is how long each span took, and, as "unattended", how long no process carried the wave on.
	Seconds map[plans.Span]float64 `json:"seconds"`
	// From has the nodes that the pods have left, in the order of the ordinals.
	From []string `json:"from,omitempty"`
	// Onto has the nodes that the pods have reached, in the order of the ordinals.
	Onto []string `json:"onto,omitempty"`
	// Places has the nodes on which placeholders had taken the places of the pods before these left, in the order of the
	// ordinals; missing without placeholders.
	Places []string `json:"places,omitempty"`
	// Seen says in words what was seen from these places, in the order of the ordinals: what was reached from there, such as
	// "reached 3 of 3", and a clock that is off; missing if nothing was asked.
	Seen []string `json:"seen,omitempty"`
	// Writes counts what was sent to both API servers since the wave before.
	Writes int `json:"writes,omitempty"`
	// Gaps are the times in which no process carried the wave on.
	Gaps []journal.Gap `json:"gaps,omitempty"`
	// Budgets is what the budget of each side allowed while the wave was away, on the way to the destination.
	Budgets map[plans.Side]string `json:"budgets,omitempty"`
	// Process is the process that has seen the wave arrive.
	Process string `json:"process,omitempty"`
	// Epoch is the epoch of the process that has seen the wave arrive.
	Epoch int64 `json:"epoch"`
}

// Reached returns the nodes that the pods have reached, and for each that is another one where its place was taken.
func (w Wave) Reached() []string {
	out := slices.Clone(w.Onto)
	for k, node := range out {
		if k < len(w.Places) && w.Places[k] != "" && node != "" && w.Places[k] != node {
			out[k] = node + " (its place: " + w.Places[k] + ")"
		}
	}
	return out
}

// Level is how many ordinals were away from this time on.
type Level struct {
	// From is the time from which on this number was away.
	From metav1.MicroTime `json:"from"`
	// Count is how many ordinals were away.
	Count int32 `json:"count"`
}

// Span has the figures of one span, or of their sum, in seconds.
type Span struct {
	// Name is the span, or "neither side" for the sum of all.
	Name plans.Span `json:"name"`
	// Median is the median over the waves.
	Median float64 `json:"median"`
	// Longest is the longest of the waves.
	Longest float64 `json:"longest"`
	// Total is the sum over the waves.
	Total float64 `json:"total"`
}

// New returns the report of a plan. whole is its whole timeline, and untold the reason why a part of it is missing.
// carried reports that a process carries the plan out.
func New(p *plans.Plan, j *journal.Journal, whole journal.Timeline, untold error, carried bool, now time.Time) *Report {
	r := &Report{
		APIVersion: plans.APIVersion, Kind: Kind, Plan: p.Name, ID: p.ID, Hash: p.Hash, Source: p.Source, Destination: p.Destination,
		Direction: j.Leg.Direction, Outcome: j.Outcome, Blocked: plans.Line(j.Blocked),
		Ordinals: p.Count, MaxUnavailable: p.MaxUnavailable, Window: p.Window, Budget: p.Budget,
		Made: p.Made, Begun: whole.Begun, Ended: j.EndedAt, Ignored: p.Ignored, Vouched: journal.Vouched(j, p),
		Events: slices.Clone(whole.Events), Omitted: whole.Omitted, text: preview.Render(p, journal.New(p).Leg),
	}
	if untold != nil {
		r.Untold = plans.Line(untold.Error())
	}
	for _, w := range whole.Waves {
		r.Waves = append(r.Waves, waveOf(p, w))
	}
	if w, away := underWay(p, j, carried, now); away {
		r.Waves = append(r.Waves, w)
	}
	r.Checks = whole.Checks
	for _, w := range r.Waves {
		r.Writes += w.Writes
	}
	r.Away = levels(r.Waves)
	for _, l := range r.Away {
		r.Peak = max(r.Peak, l.Count)
	}
	r.Spans = figures(r.Waves)
	for o := p.End() - 1; o >= p.Start; o-- {
		if !slices.ContainsFunc(r.Waves, func(w Wave) bool { return slices.Contains(w.Ordinals, o) }) {
			r.Unrecorded = append(r.Unrecorded, o)
		}
	}
	return r
}

func waveOf(p *plans.Plan, w journal.Wave) Wave {
	arrived := metav1.NewMicroTime(w.Arrived())
	out := Wave{
		Pods: p.Pods(w.Ordinals), Ordinals: slices.Collect(w.Ordinals.All()), To: w.To, Left: w.Left, Arrived: &arrived,
		Seconds: map[plans.Span]float64{}, Process: w.By, Epoch: w.Epoch, Writes: w.Writes, Places: w.Places, Seen: w.Seen,
	}
	if w.To == plans.Destination {
		out.Budgets = preview.Budgets(p, w.Ordinals)
	}
	for _, s := range plans.Spans() {
		out.Seconds[s] = w.Span(s).Seconds()
	}
	if out.Gaps = w.Gaps; len(w.Gaps) > 0 {
		out.Seconds[plans.Unattended] = w.Span(plans.Unattended).Seconds()
	}
	for _, n := range w.Nodes {
		out.From, out.Onto = append(out.From, n[0]), append(out.Onto, n[1])
	}
	return out
}

// underWay returns the wave that is on neither side now, as far as the stopwatch has measured it.
func underWay(p *plans.Plan, j *journal.Journal, carried bool, now time.Time) (Wave, bool) {
	left := j.Left()
	if left.IsZero() || j.Flight == nil {
		return Wave{}, false
	}
	out := Wave{
		Pods: p.Pods(j.Flight.Ordinals), Ordinals: slices.Collect(j.Flight.Ordinals.All()), To: j.Flight.From.Other(),
		Left: metav1.NewMicroTime(left), Seconds: map[plans.Span]float64{}, Epoch: j.Epoch,
	}
	took, gaps := j.Stopwatch.Until(now, carried), j.Stopwatch.Gaps
	for _, s := range plans.Spans() {
		out.Seconds[s] = took[s].Seconds()
	}
	if unattended := took[plans.Unattended]; unattended > 0 {
		out.Seconds[plans.Unattended] = unattended.Seconds()
		out.Gaps = slices.Clone(gaps)
	}
	if end := now.Add(-took[plans.Unattended]); !carried {
		for _, g := range gaps {
			end = end.Add(inDuration(g.Seconds))
		}
		out.Gaps = append(out.Gaps, journal.Gap{From: metav1.NewMicroTime(end), Seconds: now.Sub(end).Seconds()})
	}
	out.Places, out.Seen = j.Timeline.PlacesOf(j.Flight.Ordinals)
	for o := range j.Flight.Ordinals.All() {
		out.From = append(out.From, j.Flight.Pod(o).Node)
	}
	return out, true
}
