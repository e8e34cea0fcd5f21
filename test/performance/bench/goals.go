package main

import (
	"errors"
	"fmt"
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

// goals returns the goals of a move between two clusters.
func goals(tool, hand []passage, counted *counts, ordinals int32) []goal {
	away, overhead := of(tool, passage.between), of(tool, passage.overhead)
	each := func(kind traffic.Kind) float64 { return float64(sum(number(counted.apply, kind))) / float64(ordinals) }
	inSeconds := func(d time.Duration) float64 { return d.Seconds() }
	return []goal{
		{"on neither side beyond stop and start, median", inSeconds(away.median), 0.050, "%.3f s"},
		{"on neither side beyond stop and start, p99", inSeconds(away.p99), 0.150, "%.3f s"},
		{"whole overhead per ordinal, median", inSeconds(overhead.median), 0.120, "%.3f s"},
		{"the same, as a share of the script's", ratio(overhead.median, of(hand, passage.overhead).median), 0.10, "%.2f"},
		{"reads per ordinal in apply", each(traffic.Read), 25, "%.1f"},
		{"writes per ordinal in apply", each(traffic.Write), 10, "%.1f"},
	}
}

// goalTable returns a table of goals, and an error that names those that were missed.
func goalTable(goals []goal) (string, error) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "GOAL\tAT MOST\tHERE\t")
	var missed []string
	for _, g := range goals {
		ok := g.have <= g.most // NaN misses too
		if !ok {
			missed = append(missed, g.what)
		}
		fmt.Fprintf(w, "%s\t"+g.format+"\t"+g.format+"\t%s\n", g.what, g.most, g.have, met(ok))
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
