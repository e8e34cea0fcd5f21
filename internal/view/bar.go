package view

import (
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

// bar draws spans one after the other in so many columns, with a line between them. whole is the time that fills all
// columns. Each span that took any time has at least one column. running is the span under way, or "".
func (s Style) bar(spans Spans, running plans.Span, whole time.Duration, width int) string {
	parts := 0
	for _, d := range spans {
		if d > 0 {
			parts++
		}
	}
	if parts == 0 || whole <= 0 || width < 2*parts-1 {
		return ""
	}
	free := width - (parts - 1) // the lines between the parts
	spare := free - parts       // columns beyond the one that each part has
	fill := s.pick("=", "━")
	var drawn []string
	for at, d := range spans {
		if d <= 0 {
			continue
		}
		n := 1 + int(float64(spare)*min(d.Seconds()/whole.Seconds(), 1))
		part := strings.Repeat(fill, n)
		if at == Index(running) {
			part = strings.Repeat(fill, n-1) + s.pick(">", "▸")
		}
		drawn = append(drawn, s.paintSpan(part, at))
	}
	return strings.Join(drawn, s.pick("|", "│"))
}

// progress draws how many of all ordinals have arrived.
func (s Style) progress(n, of, width int) string {
	if of <= 0 || width < 3 {
		return ""
	}
	full := min(width*n/of, width)
	return s.paint(strings.Repeat(s.pick("#", "█"), full), good) + s.paint(strings.Repeat(s.pick(".", "░"), width-full), dim)
}

// legend returns the names of the spans, short where the full ones do not fit.
func legend(width int) string {
	var names []string
	for _, s := range plans.Spans() {
		names = append(names, string(s))
	}
	if full := strings.Join(names, "|"); len(full) <= width {
		return full
	}
	for i := range names {
		names[i] = names[i][:1]
	}
	return strings.Join(names, "|")
}
