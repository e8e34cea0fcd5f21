package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// The sizes of the picture, in pixels.
const (
	labels    = 300 // width of the names
	bars      = 520 // width of the longest bar
	figureEnd = 80  // width of the figure behind a bar
	rowHeight = 26
	barHeight = 16
	top       = 64
)

// style has colours that differ for readers who do not see all of them, on light and on dark.
const style = `text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600 }
.s0 { fill: #9aa4b0 } .s1 { fill: #d55e00 } .s2 { fill: #0072b2 } .s3 { fill: #e69f00 } .s4 { fill: #009e73 }
line { stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.s0 { fill: #7d8590 } .s2 { fill: #56b4e9 }
line { stroke: #3d444d }
}
`

// picture returns the medians of the sections as bars, one for each move.
func (r *report) picture() string {
	longest := time.Duration(1)
	for _, m := range r.moves {
		longest = max(longest, whole(m))
	}
	const width = labels + bars + figureEnd
	height := top + rowHeight*len(r.moves) + 28
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Where the time of a wave goes</title>\n<style>\n%s</style>\n", style)
	b.WriteString("<text class=\"head\" x=\"8\" y=\"20\">Where the time of a wave goes, medians in milliseconds</text>\n")
	x := 8
	for i, s := range sections() {
		fmt.Fprintf(&b, "<rect class=\"s%d\" x=\"%d\" y=\"34\" width=\"12\" height=\"12\"/><text x=\"%d\" y=\"44\">%s</text>\n", i, x, x+18, html.EscapeString(s.name))
		x += 40 + 7*len(s.name)
	}
	for i, m := range r.moves {
		bar(&b, m, top+rowHeight*i, float64(bars)/longest.Seconds())
	}
	y := top + rowHeight*len(r.moves)
	fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", labels, top-4, labels, y)
	fmt.Fprintf(&b, "<text x=\"8\" y=\"%d\">commit %s, Kubernetes %s, %d cores, %s</text>\n</svg>\n", y+18, html.EscapeString(r.commit), html.EscapeString(r.kubernetes), r.cores, html.EscapeString(r.date))
	return b.String()
}

// whole returns the sum of the medians of a move.
func whole(m *measured) (sum time.Duration) {
	for _, s := range sections() {
		sum += of(m.passages, s.of).median
	}
	return sum
}

// bar draws one move. scale is the pixels of one second.
func bar(b *strings.Builder, m *measured, y int, scale float64) {
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", labels-8, y+13, html.EscapeString(m.String()))
	x := float64(labels)
	for i, s := range sections() {
		median := of(m.passages, s.of).median
		width := median.Seconds() * scale
		fmt.Fprintf(b, "<rect class=\"s%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%s: %s ms</title></rect>\n", i, x, y, math.Max(width, 0), barHeight, html.EscapeString(s.name), inMilliseconds(median))
		x += width
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x+6, y+13, inMilliseconds(whole(m)))
}
