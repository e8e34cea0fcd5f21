package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// goal is a figure of the run and the highest one that is allowed.
type goal struct {
	what       string
	have, most float64
	format     string
}

func (g goal) ok() bool { return g.have <= g.most } // NaN misses too

// goals returns the goals of a run. A wave of three has three times the volumes of a wave of one, and
// sends three times the requests for them; all else is sent once. So it may cost half as much again.
func (r *report) goals() []goal {
	small := way{ordinals: r.ordinals, window: 1}
	hand, within, three, counting := small, small, small, small
	hand.byHand, within.within, three.window, counting.counted = true, true, 3, true
	many := counting
	many.ordinals = r.large
	tool, overhead := r.find(small), r.overhead(small)
	away := of(tool.passages, passage.between)
	counted, large := r.find(counting), r.find(many)
	beyond := of(r.find(within).passages, passage.between)
	more := func(what string) string {
		return fmt.Sprintf("%s per ordinal of %d, as a multiple of those of %d", what, r.large, r.ordinals)
	}
	return []goal{
		{"on neither side beyond stop and start, median", inSeconds(away.median), 0.100, "%.3f s"},
		{"on neither side beyond stop and start, p99", inSeconds(away.p99), 0.150, "%.3f s"},
		{"whole overhead per ordinal, median", inSeconds(overhead), 0.120, "%.3f s"},
		{"the same, as a share of the script's", inSeconds(overhead) / inSeconds(r.overhead(hand)), 0.10, "%.2f"},
		{"reads per ordinal in apply", counted.requests(traffic.Read), 25, "%.1f"},
		{"writes per ordinal in apply", counted.requests(traffic.Write), 10, "%.1f"},
		{"one cluster: on neither side beyond stop and start, median", inSeconds(beyond.median), 0.100, "%.3f s"},
		{"overhead of a wave of 3, as a multiple of that of 1", inSeconds(r.overhead(three)) / inSeconds(overhead), 1.5, "%.2f"},
		{more("requests"), large.requests(kinds()...) / counted.requests(kinds()...), 1.2, "%.2f"},
		{more("bytes"), large.each(float64(large.bytes())) / counted.each(float64(counted.bytes())), 1.2, "%.2f"},
		{more("seconds"), large.each(large.took.Seconds()) / counted.each(counted.took.Seconds()), 1.2, "%.2f"},
		{fmt.Sprintf("requests of a plan of %d ordinals", planned), float64(r.planned), 80, "%.0f"},
	}
}

// overhead returns the median overhead of the waves of a move.
func (r *report) overhead(w way) time.Duration {
	return of(r.find(w).passages, passage.overhead).median
}

// inSeconds returns a figure of a move. A move without passages has none, and misses its goal.
func inSeconds(d time.Duration) float64 {
	if d == 0 {
		return math.NaN()
	}
	return d.Seconds()
}

// goalTable returns a table of goals, and an error that names those that were missed.
func goalTable(goals []goal) (string, error) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "GOAL\tAT MOST\tHERE\t")
	var missed []string
	for _, g := range goals {
		if !g.ok() {
			missed = append(missed, g.what)
		}
		fmt.Fprintf(w, "%s\t"+g.format+"\t"+g.format+"\t%s\n", g.what, g.most, g.have, met(g.ok()))
	}
	_ = w.Flush() // into memory
	if len(missed) > 0 {
		return b.String(), errors.New("missed: " + strings.Join(missed, "; "))
	}
	return b.String(), nil
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}
