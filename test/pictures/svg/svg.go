// Package svg draws boxes, words and arrows into a picture that needs nothing from outside: no font, no script. The
// same calls give the same bytes, so that a test can compare a picture with the one in the documents.
package svg

import (
	"fmt"
	"html"
	"strings"
)

// Class is the look of a shape.
type Class string

// The classes. Each has a colour on white paper and one on black paper.
const (
	Plain       Class = "plain"       // outlined
	Source      Class = "source"      // belongs to the source
	Destination Class = "destination" // belongs to the destination
	Flight      Class = "flight"      // is on neither side
	Quiet       Class = "quiet"       // is there, and not what the picture is about
	Kept        Class = "kept"        // stays as it is
)

const style = `<style>
.paper { fill: #ffffff }
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600; font-size: 13px }
.small { font-size: 11px; fill: #59636e }
.shape { stroke: #59636e; stroke-width: 1 }
.plain { fill: none } .quiet { fill: #eaeef2 } .kept { fill: #fff8c5 }
.source { fill: #cfe3f7 } .destination { fill: #c9ecd5 } .flight { fill: #ffd8b5 }
line, polyline { stroke: #59636e; fill: none }
.dashed { stroke-dasharray: 4 3 }
marker path { fill: #59636e }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 }
text { fill: #e6edf3 }
.small { fill: #9198a1 }
.shape, line, polyline { stroke: #7d8590 }
.quiet { fill: #21262d } .kept { fill: #3b3417 }
.source { fill: #17375c } .destination { fill: #123d24 } .flight { fill: #5a3414 }
marker path { fill: #7d8590 }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>
`

// Picture is a picture that grows by calls. Coordinates are pixels from the upper left corner.
type Picture struct {
	width, height int
	title         string
	body          strings.Builder
}

// New begins a picture. Its title is for readers who cannot see it.
func New(width, height int, title string) *Picture {
	return &Picture{width: width, height: height, title: title}
}

// Box draws a rectangle with lines of words in its middle.
func (p *Picture) Box(x, y, w, h int, c Class, words ...string) {
	fmt.Fprintf(&p.body, "<rect class=\"shape %s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>\n", c, x, y, w, h)
	const line = 15
	for n, text := range words {
		fmt.Fprintf(&p.body, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", x+w/2, y+h/2+4-(len(words)-1)*line/2+n*line, html.EscapeString(text))
	}
}

// Head writes a heading.
func (p *Picture) Head(x, y int, text string) { p.text("head", x, y, text) }

// Text writes words from x on.
func (p *Picture) Text(x, y int, text string) { p.text("", x, y, text) }

// Small writes words that explain.
func (p *Picture) Small(x, y int, text string) { p.text("small", x, y, text) }

func (p *Picture) text(class string, x, y int, text string) {
	if class != "" {
		class = " class=\"" + class + "\""
	}
	fmt.Fprintf(&p.body, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

// Line draws a line.
func (p *Picture) Line(x1, y1, x2, y2 int) {
	fmt.Fprintf(&p.body, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x1, y1, x2, y2)
}

// Arrow draws a line with a tip at its end.
func (p *Picture) Arrow(x1, y1, x2, y2 int) {
	fmt.Fprintf(&p.body, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" marker-end=\"url(#tip)\"/>\n", x1, y1, x2, y2)
}

// Dashed draws an arrow for what is only named, or only sometimes.
func (p *Picture) Dashed(x1, y1, x2, y2 int) {
	fmt.Fprintf(&p.body, "<line class=\"dashed\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" marker-end=\"url(#tip)\"/>\n", x1, y1, x2, y2)
}

// String returns the picture as a file.
func (p *Picture) String() string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %[1]d %[2]d\" width=\"%[1]d\" height=\"%[2]d\" role=\"img\">\n<title>%[3]s</title>\n", p.width, p.height, html.EscapeString(p.title)) +
		style + fmt.Sprintf("<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", p.width, p.height) + p.body.String() + "</svg>\n"
}
