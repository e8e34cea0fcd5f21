package main

import (
	"fmt"
	"slices"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
	"github.com/stsmigrate/stsmigrate/test/pictures/svg"
)

// The sizes of the matrix, in pixels.
const (
	cell, line, labels, longest = 5, 12, 420, 150
)

// draw draws the matrix of faults and writes: a row for each course and fault, with a box for each run of writes of which
// the same is known.
func draw(all results) *svg.Picture {
	rows := slices.Concat(all.of(writes), all.of(planes))
	height := 40
	for _, l := range rows {
		height += line * lines(l)
	}
	p := svg.New(labels+longest*cell+20, height, "Which faults were played at which writes")
	p.Head(12, 20, "course and fault")
	p.Head(labels, 20, "the writes, from left to right")
	y := 32
	for _, l := range rows {
		p.Small(12, y+9, fmt.Sprintf("%s: %s", l.World, l.Case))
		for k := 0; k < len(l.Played); {
			n := 1 // how many follow that are the same, in this line
			for (k+n)%longest > 0 && k+n < len(l.Played) && l.Played[k+n] == l.Played[k] {
				n++
			}
			class := map[byte]svg.Class{tally.Held: svg.Destination, tally.Broken: svg.Flight, tally.Left: svg.Plain}[l.Played[k]]
			p.Box(labels+k%longest*cell, y+k/longest*line, n*cell, line-3, class)
			k += n
		}
		y += line * lines(l)
	}
	return p
}

// lines returns how many lines a row has: a long course is continued below.
func lines(l tally.Line) int { return max((len(l.Played)+longest-1)/longest, 1) }
