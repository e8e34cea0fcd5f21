package report

import (
	"slices"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

// axis maps times to positions. A time in which no ordinal was away, such as a pause over night, is drawn as a short
// gap however long it was: the bars would vanish beside it.
type axis struct {
	parts []part
	width float64
}

// part is a stretch of time that is drawn to scale, and the gap before it.
type part struct {
	from, until time.Time
	left, right float64
	// skipped is the time that the gap before it stands for; 0 for the first part.
	skipped time.Duration
}

// gapWidth is the width of a gap, in pixels.
const gapWidth = 26

// newAxis returns the axis for the times at which waves were away, on a width in pixels.
func newAxis(waves []Wave, width float64) axis {
	sorted := slices.Clone(waves)
	slices.SortFunc(sorted, func(a, b Wave) int { return a.Left.Compare(b.Left.Time) })
	var total time.Duration
	for _, w := range sorted {
		total += w.away()
	}
	a := axis{width: width}
	least := max(total/2, time.Second)
	for _, w := range sorted {
		if n := len(a.parts); n > 0 && w.Left.Sub(a.parts[n-1].until) <= least {
			if w.until().After(a.parts[n-1].until) {
				a.parts[n-1].until = w.until()
			}
			continue
		}
		p := part{from: w.Left.Time, until: w.until()}
		if n := len(a.parts); n > 0 {
			p.skipped = w.Left.Sub(a.parts[n-1].until)
		}
		a.parts = append(a.parts, p)
	}
	a.place()
	return a
}

// place gives each part its share of the width.
func (a *axis) place() {
	var drawn time.Duration
	for _, p := range a.parts {
		drawn += p.until.Sub(p.from)
	}
	gap := min(gapWidth, a.width/2/float64(max(len(a.parts), 1)))
	free := a.width - gap*float64(max(len(a.parts)-1, 0))
	x := 0.0
	for k := range a.parts {
		p := &a.parts[k]
		if k > 0 {
			x += gap
		}
		p.left = x
		if drawn > 0 {
			x += free * float64(p.until.Sub(p.from)) / float64(drawn)
		}
		p.right = x
	}
}

// at returns the position of a time.
func (a *axis) at(t time.Time) float64 {
	for _, p := range a.parts {
		switch {
		case t.Before(p.from):
			return p.left
		case !t.After(p.until):
			if p.until.Equal(p.from) {
				return p.left
			}
			return p.left + (p.right-p.left)*float64(t.Sub(p.from))/float64(p.until.Sub(p.from))
		}
	}
	return a.width
}

// tick is a mark on the axis.
type tick struct {
	X    float64
	Text string
}

// ticks returns marks at round times, no two closer than 90 pixels, and none whose text would meet that of a gap.
func (a *axis) ticks() []tick {
	var out []tick
	last := -1e9
	step := a.step()
	for _, p := range a.parts {
		for t := p.from.Truncate(step).Add(step); !t.After(p.until); t = t.Add(step) {
			x := a.at(t)
			meets := slices.ContainsFunc(a.gaps(), func(g tick) bool { return max(x-g.X, g.X-x) < 50 })
			if x-last >= 90 && x < a.width-30 && !meets {
				out, last = append(out, tick{x, t.UTC().Format("15:04:05")}), x
			}
		}
	}
	return out
}

// step returns the round duration that is about 100 pixels long.
func (a *axis) step() time.Duration {
	var drawn time.Duration
	var pixels float64
	for _, p := range a.parts {
		drawn += p.until.Sub(p.from)
		pixels += p.right - p.left
	}
	want := time.Duration(float64(drawn) * 100 / max(pixels, 1))
	for _, round := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour} {
		if round >= want {
			return round
		}
	}
	return 24 * time.Hour
}

// gaps returns the times that are not drawn to scale.
func (a *axis) gaps() []tick {
	var out []tick
	for k, p := range a.parts {
		if k > 0 {
			out = append(out, tick{(a.parts[k-1].right + p.left) / 2, plans.Brief(p.skipped)})
		}
	}
	return out
}
