package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/stsmigrate/stsmigrate/plans"
)

const (
	gap     = 2  // columns between two columns of the table
	minBar  = 10 // a narrower bar shows nothing
	maxBar  = 48
	timeCol = 6
	maxSide = 13 // a sign and the longest word of a pod
	// maxText is how many lines one sentence may take below the table, and allText how many where it is explained.
	maxText = 3
	allText = 12
	minRows = 4
)

// Render draws a migration. No line is wider than the size, and there are no more lines than it has.
func Render(m Migration, size Size, style Style) string {
	head := m.head(size.Width, style)
	foot := m.foot(size.Width, style)
	rows := size.Height - len(head) - 1
	if rest := max(rows-minRows, 0); len(foot) > rest && len(m.Ordinals) > rest {
		rows -= min(len(foot), max(rest, 0))
	} else {
		rows -= len(foot)
	}
	lines := append(head, m.table(max(rows, 1), size.Width, style)...)
	return fit(append(lines, foot...), size)
}

// fit cuts lines to the size.
func fit(lines []string, size Size) string {
	if len(lines) > size.Height {
		lines = lines[:max(size.Height, 0)]
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(line, size.Width, ""), " ")
	}
	return strings.Join(lines, "\n")
}

// head returns what is about the whole plan.
func (m Migration) head(width int, style Style) []string {
	down := "?"
	if m.Unavailable != nil {
		down = fmt.Sprint(*m.Unavailable)
	}
	limit := fmt.Sprintf("unavailable %s of %d allowed", down, m.MaxUnavailable)
	if m.Unavailable != nil && *m.Unavailable > m.MaxUnavailable {
		limit = style.paint(limit, bad)
	}
	out := flow([]string{
		style.paint(plain(m.Plan), strong), plain(m.Source) + " -> " + plain(m.Destination),
		style.paint(plain(string(m.State)), tintOf(m.State)), limit,
	}, width)
	done := fmt.Sprintf("%d of %d", m.Arrived, len(m.Ordinals))
	if m.To == plans.Source {
		done += " back"
	}
	times := []string{done, named("elapsed ", m.Elapsed())}
	if left := m.TimeLeft(); left > 0 {
		times = append(times, plans.Forecast(m.Known, m.Usual.Total(), left))
	}
	bar := style.progress(m.Arrived, len(m.Ordinals), min(max(width/4, 3), 30))
	return append(out, flow(append([]string{bar}, times...), width)...)
}

// named returns a name and a duration, or "" if the duration is not known.
func named(name string, d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return name + plans.Brief(d)
}

// columns are the widths of the table's columns; 0 for one that is left out.
type columns struct{ ordinal, source, destination, phase, bar, total, since int }

// layout divides the width among the columns.
func (m Migration) layout(rows []row, width int) columns {
	c := columns{ordinal: 3, source: 1, destination: 1, phase: len("PHASE")}
	for _, r := range rows {
		c.ordinal, c.phase = max(c.ordinal, len(r.label())), max(c.phase, ansi.StringWidth(plain(r.Phase)))
	}
	c.source, c.destination = m.side(rows, m.SourceName, func(o Ordinal) string { return o.Source }), m.side(rows, m.DestinationName, func(o Ordinal) string { return o.Destination })
	rest := width - c.ordinal - c.source - c.destination - c.phase - 4*gap
	if rest >= minBar+gap+timeCol {
		c.total, rest = timeCol, rest-timeCol-gap
	}
	if rest >= minBar+gap+timeCol {
		c.since, rest = timeCol, rest-timeCol-gap
	}
	if rest >= minBar {
		c.bar = min(rest, maxBar)
	}
	return c
}

// side returns the width of the column of one side.
func (m Migration) side(rows []row, name string, word func(Ordinal) string) int {
	width := ansi.StringWidth(plain(name))
	for _, r := range rows {
		text, _ := Style{}.pod(plain(word(r.Ordinal)))
		width = max(width, ansi.StringWidth(text))
	}
	return min(width, maxSide)
}

// table returns the rows of the ordinals below their head, in at most one line more than most.
func (m Migration) table(most, width int, style Style) []string {
	rows, hidden := m.rows(most)
	c := m.layout(rows, width)
	titles := []string{
		cell("ORD", c.ordinal), cell(strings.ToUpper(plain(m.SourceName)), c.source), cell(strings.ToUpper(plain(m.DestinationName)), c.destination),
		cell("PHASE", c.phase),
	}
	for _, t := range []struct {
		title string
		width int
	}{{legend(c.bar), c.bar}, {"TOOK", c.total}, {"SINCE", c.since}} {
		if t.width > 0 {
			titles = append(titles, cell(t.title, t.width))
		}
	}
	lines := []string{style.paint(strings.TrimRight(strings.Join(titles, strings.Repeat(" ", gap)), " "), dim)}
	whole := m.whole(rows)
	for _, r := range rows {
		lines = append(lines, m.line(r, c, whole, style))
	}
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf("%d more ordinals: a higher window shows them", hidden))
	}
	return lines
}

// whole returns the time that fills a bar: the longest of any row.
func (m Migration) whole(rows []row) time.Duration {
	longest := m.Usual.Total()
	for _, r := range rows {
		longest = max(longest, r.until(m.Now).Total())
	}
	return longest
}

// line draws one row.
func (m Migration) line(r row, c columns, whole time.Duration, style Style) string {
	source, ofSource := style.pod(plain(r.Source))
	destination, ofDestination := style.pod(plain(r.Destination))
	phase := cell(plain(r.Phase), c.phase)
	switch r.Phase {
	case Arrived:
		phase = style.paint(phase, good)
	case Queued:
		phase = style.paint(phase, dim)
	default:
		phase = style.paint(phase, strong)
	}
	cells := []string{
		cell(r.label(), c.ordinal), style.paint(cell(source, c.source), ofSource), style.paint(cell(destination, c.destination), ofDestination), phase,
	}
	spans := r.until(m.Now)
	if c.bar > 0 {
		cells = append(cells, cell(style.bar(spans, r.Running, whole, c.bar), c.bar))
	}
	if c.total > 0 {
		cells = append(cells, cell(named("", spans.Total()), c.total))
	}
	if c.since > 0 && !r.Since.IsZero() {
		cells = append(cells, cell(plans.Brief(m.Now.Sub(r.Since)), c.since))
	}
	return strings.Join(cells, strings.Repeat(" ", gap))
}

// foot returns what is below the table: what the plan waits for, budgets, further facts, and the next command.
func (m Migration) foot(width int, style Style) []string {
	var out []string
	if m.Wait.Reason != "" {
		out = append(out, m.why(width, maxText, style)...)
	}
	budgets := []string{}
	for _, b := range m.Budgets {
		budgets = append(budgets, fmt.Sprintf("%s %d of %d may go", b.Side, b.MayGo, b.Healthy))
	}
	if !m.TightSince.IsZero() {
		budgets = append(budgets, "tight for "+plans.Brief(m.Now.Sub(m.TightSince)))
	}
	if m.TightLongest > 0 {
		budgets = append(budgets, "tight for at most "+plans.Brief(m.TightLongest)+" per wave")
	}
	if len(budgets) > 0 {
		out = append(out, sentence("budgets", strings.Join(budgets, ", "), width, maxText)...)
	}
	for _, f := range m.Facts {
		out = append(out, sentence(f.Name, f.Text, width, maxText)...)
	}
	if m.Next != "" {
		out = append(out, sentence(style.paint("next", strong), m.Next, width, maxText)...)
	}
	return out
}

// why returns what the plan waits for, or why it is blocked.
func (m Migration) why(width, most int, style Style) []string {
	if tintOf(m.State) == bad {
		return sentence(style.paint("reason", bad), m.Wait.text(m.Now), width, most)
	}
	return sentence(style.paint("waits", strong), m.Wait.text(m.Now), width, most)
}

// text returns what is waited for, for how long, and how long that usually takes.
func (w Wait) text(now time.Time) string {
	text := w.Reason
	if w.Pods != "" {
		text = w.Pods + ": " + text
	}
	if w.Since.IsZero() {
		return text
	}
	text += " (" + plans.Brief(now.Sub(w.Since))
	if w.Usual > 0 {
		text += ", usually " + plans.Brief(w.Usual)
	}
	return text + ")"
}

// sentence returns a name and a text beside it, on at most so many lines. A text that is longer ends with dots.
func sentence(name, text string, width, most int) []string {
	const indent = 9
	lines := wrap(plain(text), max(width-indent, 1))
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = ansi.Truncate(lines[most-1], max(width-indent-3, 0), "") + "..."
	}
	for i := range lines {
		if i == 0 {
			lines[i] = cell(name, indent-1) + " " + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", indent) + lines[i]
		}
	}
	return lines
}
