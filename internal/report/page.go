package report

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

//go:embed page.html.tmpl moves.svg.tmpl away.svg.tmpl
var templates embed.FS

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteHTML writes one page that needs nothing else: no script, no font and no picture from elsewhere.
func (r *Report) WriteHTML(w io.Writer) error { return r.execute(w, "page.html.tmpl") }

// WriteSVG writes the picture of the move alone.
func (r *Report) WriteSVG(w io.Writer) error { return r.execute(w, "moves.svg.tmpl") }

func (r *Report) execute(w io.Writer, name string) error {
	t, err := template.New(name).Funcs(template.FuncMap{"brief": func(s float64) string { return plans.Brief(time.Duration(s * float64(time.Second))) }, "when": when, "join": join}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(w, r.drawn())
}

// when returns a time with its date and zone, or "not recorded".
func when(at any) string {
	switch at := at.(type) {
	case metav1.Time:
		return at.UTC().Format("2006-01-02 15:04:05 MST")
	case metav1.MicroTime:
		return at.UTC().Format("2006-01-02 15:04:05.000 MST")
	case *metav1.Time:
		if at != nil {
			return when(*at)
		}
	case *metav1.MicroTime:
		if at != nil {
			return when(*at)
		}
		return "still away"
	}
	return "not recorded"
}

// join lists the different nodes of a wave.
func join(names []string) string {
	out := slices.Clone(names)
	slices.Sort(out)
	out = slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" })
	if len(out) == 0 {
		return "not recorded"
	}
	return strings.Join(out, ", ")
}

func inDuration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// Sizes of the pictures, in pixels.
const (
	width     = 960
	labels    = 96 // for the names of the pods
	top       = 46 // for the legend and the times
	awayHigh  = 90
	rowHigh   = 18
	leastHigh = 4
	mostHigh  = 1400 // of all rows together
)

// drawing is a report and the positions of what its pictures show.
type drawing struct {
	*Report
	Text          string // of the plan
	Order         []plans.Span
	Sides         []plans.Side
	Width, Right  float64
	Labels        float64
	High, Base    float64
	Row           float64
	Bars          []bar
	Names         []label
	Ticks, Gaps   []tick
	Legend        []legend
	AwayHigh      float64
	AwayLine      string // the points of the line
	AwayTop       float64
	Limit, LimitY float64
	State         string
	Caption       string
}

type bar struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

type label struct {
	Y    float64
	Text string
}

type legend struct {
	X           float64
	Class, Text string
}

// drawn computes the pictures: one row for each ordinal, and how many ordinals were away.
func (r *Report) drawn() drawing {
	d := drawing{Report: r, Text: r.text, Width: width, Labels: labels, Right: width - 8, Sides: plans.Sides(), State: state(r)}
	rows := r.rows()
	d.Row = min(rowHigh, max(leastHigh, mostHigh/float64(max(len(rows), 1))))
	d.Base = d.Row * float64(len(rows))
	d.High = top + d.Base + 4
	a := newAxis(r.Waves, d.Right-labels)
	for k, o := range rows {
		if d.Row >= 12 || k%8 == 0 {
			d.Names = append(d.Names, label{d.Row*float64(k) + d.Row*0.72, fmt.Sprintf("%s-%d", r.Source.Name, o)})
		}
		for _, w := range r.Waves {
			if slices.Contains(w.Ordinals, o) {
				d.Bars = append(d.Bars, bars(&a, w, o, d.Row*float64(k), d.Row)...)
			}
		}
	}
	for _, t := range a.ticks() {
		d.Ticks = append(d.Ticks, tick{labels + t.X, t.Text})
	}
	for _, g := range a.gaps() {
		d.Gaps = append(d.Gaps, tick{labels + g.X, g.Text})
	}
	d.Order = r.order()
	for k, s := range d.Order {
		d.Legend = append(d.Legend, legend{labels + float64(k)*min(150, (d.Right-labels)/float64(len(d.Order))), string(s), meaning(s)})
	}
	d.away(&a)
	d.Caption = fmt.Sprintf("%d of %d ordinals moved, at most %d away at once, %d allowed", len(rows)-r.still(), r.Ordinals, r.Peak, r.MaxUnavailable)
	return d
}

// order returns the spans that are drawn. The time without a process is one of them only where there is any.
func (r *Report) order() []plans.Span {
	if slices.ContainsFunc(r.Waves, func(w Wave) bool { return w.Seconds[plans.Unattended] > 0 }) {
		return plans.AllSpans()
	}
	return plans.Spans()
}

// still returns how many ordinals are away now.
func (r *Report) still() int {
	n := 0
	for _, w := range r.Waves {
		if w.Arrived == nil {
			n += len(w.Ordinals)
		}
	}
	return n
}

// rows returns the ordinals that have moved, in the order in which they left first.
func (r *Report) rows() []int32 {
	var out []int32
	for _, w := range r.Waves {
		for _, o := range slices.Backward(w.Ordinals) {
			if !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// bars returns one bar for each span of an ordinal, and for each time in it in which no process carried it on. One too
// short to be seen is left out; of a wave too short to be seen its beginning is shown.
func bars(a *axis, w Wave, ordinal int32, y, high float64) []bar {
	var out []bar
	at, gaps := w.Left.Time, w.Gaps
	draw := func(s plans.Span, d time.Duration) {
		next := at.Add(d)
		if from, until := a.at(at), a.at(next); until-from >= 0.2 {
			out = append(out, bar{
				labels + from, y + high*0.12, until - from, high * 0.76, string(s),
				fmt.Sprintf("ordinal %d to the %s: %s %s, from %s", ordinal, w.To, meaning(s), plans.Brief(next.Sub(at)), at.UTC().Format("15:04:05.000")),
			})
		}
		at = next
	}
	for _, s := range plans.Spans() {
		left := inDuration(w.Seconds[s])
		for len(gaps) > 0 && gaps[0].From.Sub(at) < left {
			before := max(gaps[0].From.Sub(at), 0)
			draw(s, before)
			draw(plans.Unattended, inDuration(gaps[0].Seconds))
			left, gaps = left-before, gaps[1:]
		}
		draw(s, left)
	}
	for _, g := range gaps {
		draw(plans.Unattended, inDuration(g.Seconds))
	}
	if len(out) == 0 {
		x := min(a.at(w.Left.Time), a.width-1)
		out = append(out, bar{labels + x, y + high*0.12, 1, high * 0.76, string(plans.Starting), fmt.Sprintf("ordinal %d to the %s: %s away, from %s", ordinal, w.To, plans.Brief(w.away()), w.Left.UTC().Format("15:04:05.000"))})
	}
	return out
}

// away draws how many ordinals were away, and the number that was allowed.
func (d *drawing) away(a *axis) {
	d.AwayHigh, d.AwayTop = awayHigh, awayHigh-12
	most := float64(max(d.Peak, d.MaxUnavailable)) * 1.15
	y := func(count int32) float64 { return d.AwayTop - d.AwayTop*float64(count)/max(most, 1) }
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", float64(labels), y(0))
	for _, l := range d.Away {
		fmt.Fprintf(&b, "H%.1fV%.1f", labels+a.at(l.From.Time), y(l.Count))
	}
	fmt.Fprintf(&b, "H%.1fV%.1fZ", d.Right, y(0))
	d.AwayLine, d.Limit, d.LimitY = b.String(), float64(d.MaxUnavailable), y(d.MaxUnavailable)
}

// state says in words how far the plan is.
func state(r *Report) string {
	switch {
	case r.Outcome != "":
		return string(r.Outcome)
	case r.Blocked != "":
		return "Blocked"
	case r.Begun == nil && len(r.Waves) == 0:
		return "not begun"
	}
	return "under way"
}

// meaning returns what a span is, for people.
func meaning(s plans.Span) string {
	switch s {
	case plans.Terminating:
		return "pod stops"
	case plans.Detaching:
		return "volumes detach"
	case plans.HandingOver:
		return "claims change sides"
	case plans.Attaching:
		return "pod starts"
	case plans.Starting:
		return "pod becomes available"
	case plans.Unattended:
		return "without a process"
	}
	return "on neither side"
}
