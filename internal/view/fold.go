package view

import (
	"strconv"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

// row is one line of the table: an ordinal, or neighbours that are equal.
type row struct {
	Ordinal
	lowest int32
	count  int
}

// label returns the ordinals of a row, such as "4" or "9..0".
func (r row) label() string {
	if r.count == 1 {
		return strconv.Itoa(int(r.Ordinal.Ordinal))
	}
	return strconv.Itoa(int(r.Ordinal.Ordinal)) + ".." + strconv.Itoa(int(r.lowest))
}

// rows returns at most so many rows for all ordinals. Neighbours that are equal in all that is shown share a row. If
// there are still too many, those share one that are in the same places, except next to the wave under way.
func (m Migration) rows(most int) (rows []row, hidden int) {
	rows = fold(m.Ordinals, func(a, b Ordinal) bool { return alike(a, b) && a.Spans == b.Spans })
	if len(rows) <= most {
		return rows, 0
	}
	rows = m.unfold(fold(m.Ordinals, alike), most)
	if len(rows) <= most {
		return rows, 0
	}
	return fewest(rows, max(most-1, 0))
}

// alike reports whether two ordinals are in the same places and phase.
func alike(a, b Ordinal) bool {
	return a.Source == b.Source && a.Destination == b.Destination && a.Phase == b.Phase && a.Running == b.Running && a.RunningSince.Equal(b.RunningSince)
}

// fold puts neighbours into one row. The row has the mean of their spans, and the time of the one that came last.
func fold(all []Ordinal, equal func(a, b Ordinal) bool) []row {
	var rows []row
	for i, o := range all {
		if i == 0 || !equal(all[i-1], o) {
			rows = append(rows, row{Ordinal: o, lowest: o.Ordinal, count: 1})
			continue
		}
		last := &rows[len(rows)-1]
		last.lowest, last.count = o.Ordinal, last.count+1
		if o.Since.After(last.Since) {
			last.Since = o.Since
		}
	}
	at := 0
	for i := range rows {
		rows[i].Spans = mean(all[at : at+rows[i].count])
		at += rows[i].count
	}
	return rows
}

// mean returns the mean of the spans that are known.
func mean(all []Ordinal) Spans {
	var sum Spans
	known := 0
	for _, o := range all {
		if o.Spans == (Spans{}) {
			continue
		}
		known++
		for k, d := range o.Spans {
			sum[k] += d
		}
	}
	for k := range sum {
		sum[k] /= time.Duration(max(known, 1))
	}
	return sum
}

// unfold gives rows of their own to the ordinals that arrived last, as far as there is room: they are the ones next to
// those that have not left.
func (m Migration) unfold(rows []row, most int) []row {
	var out []row
	room, at := most-len(rows), 0
	for _, r := range rows {
		all := m.Ordinals[at : at+r.count]
		at += r.count
		single := min(max(room, 0), r.count-1)
		if r.Phase != Arrived || single == 0 || mean(all) == (Spans{}) {
			out = append(out, r)
			continue
		}
		room -= single
		each := func(some []Ordinal) []row { return fold(some, func(Ordinal, Ordinal) bool { return false }) }
		if m.To == plans.Source { // they arrive lowest first
			out = append(append(out, each(all[:single])...), fold(all[single:], alike)...)
		} else {
			out = append(append(out, fold(all[:r.count-single], alike)...), each(all[r.count-single:])...)
		}
	}
	return out
}

// fewest returns so many rows, first those that are not simply available on one side, and how many ordinals the
// others have.
func fewest(rows []row, most int) (out []row, hidden int) {
	keep := map[int32]bool{}
	for _, odd := range []bool{true, false} {
		for _, r := range rows {
			calm := (r.Source == "Ready") != (r.Destination == "Ready")
			if calm != odd && len(keep) < most {
				keep[r.Ordinal.Ordinal] = true
			}
		}
	}
	for _, r := range rows {
		if keep[r.Ordinal.Ordinal] {
			out = append(out, r)
		} else {
			hidden += r.count
		}
	}
	return out, hidden
}
