package view

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Explain draws what a migration does now, in full sentences: why it waits, how long each span usually takes, and
// what comes next. It keeps to the size as Render does.
func Explain(m Migration, size Size, style Style) string {
	lines := m.head(size.Width, style)
	if text := m.State.Text(); text != "" {
		lines = append(lines, sentence("state", text, size.Width, allText)...)
	}
	if m.Wait.Reason != "" {
		lines = append(lines, m.why(size.Width, allText, style)...)
	}
	if m.Next != "" {
		lines = append(lines, sentence(style.paint("next", strong), m.Next, size.Width, allText)...)
	}
	lines = append(lines, "")
	running := Spans{}
	under := plans.Span("")
	for _, o := range m.Ordinals {
		if o.Running != "" {
			running, under = o.until(m.Now), o.Running
		}
	}
	lines = append(lines, style.paint(cell("", 2)+cell("SPAN", 11)+cell("NOW", 8)+cell("USUALLY", 9)+"FROM, TO", dim))
	for at, s := range plans.Spans() {
		mark := "  "
		if s == under {
			mark = style.pick("> ", "▸ ")
		}
		text := mark + cell(string(s), 11) + cell(named("", running[at]), 8) + cell(named("", m.Usual[at]), 9) + spanWords(s)
		lines = append(lines, text)
	}
	lines = append(lines, "")
	lines = append(lines, sentence("budget", fmt.Sprintf("at most %d of the ordinals may be unavailable at once, over both sides together", m.MaxUnavailable), size.Width, allText)...)
	return fit(lines, size)
}

// spanWords returns from when to when a span lasts.
func spanWords(s plans.Span) string {
	switch s {
	case plans.Terminating:
		return "it leaves its set, until its pod has ended"
	case plans.Detaching:
		return "until node and storage have released its volumes"
	case plans.HandingOver:
		return "until its claims are bound on the other side"
	case plans.Attaching:
		return "it joins the other set, until its containers start: scheduling, volumes, images"
	case plans.Starting:
		return "until its pod is available"
	case plans.Unattended:
		return "no process carried it on"
	}
	return ""
}
