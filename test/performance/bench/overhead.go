package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// passage is the move of one ordinal. It begins when the previous ordinal is Ready on the
// destination (for the first ordinal: when its move begins) and ends when this ordinal is Ready
// there.
type passage struct {
	ordinal int32
	begin   time.Time
	witness.Span
}

// passagesOf returns the passages of the ordinals in the order in which they move, highest first.
// It fails if a move was not observed in full.
func passagesOf(start time.Time, spans map[int32]witness.Span, ordinals int32) ([]passage, error) {
	var out []passage
	for o := ordinals - 1; o >= 0; o-- {
		p := passage{o, start, spans[o]}
		times := []time.Time{p.begin, p.SourceDeleting, p.SourceGone, p.DestinationCreated, p.DestinationReady}
		if p.SourceDeleting.IsZero() || !slices.IsSortedFunc(times, time.Time.Compare) {
			return nil, fmt.Errorf("the move of ordinal %d was not seen in full: %v", o, times)
		}
		start = p.DestinationReady
		out = append(out, p)
	}
	return out, nil
}

// overhead returns the duration of the move without the time that the pods take to stop and to
// start.
func (p passage) overhead() time.Duration {
	return p.DestinationReady.Sub(p.begin) - p.SourceGone.Sub(p.SourceDeleting) - p.DestinationReady.Sub(p.DestinationCreated)
}

// down returns how long the ordinal was on neither side.
func (p passage) down() time.Duration { return p.DestinationReady.Sub(p.SourceDeleting) }

// between returns how long the ordinal was on neither side beyond the time that its pods took to stop and to start.
func (p passage) between() time.Duration { return p.DestinationCreated.Sub(p.SourceGone) }

// step returns the pattern of a line about an ordinal: the time of day, which the script leaves
// out, the pod, the step and the rest. It captures the ordinal, the step and the rest.
func step() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[\d:.]+\s+)?` + fixture.Name + `-(\d+) (\w+)\s+(.*)$`)
}

// startOf returns when the move of the first ordinal began: the time of the last line before the
// lines about that ordinal. The work that is done once for the whole set precedes that line. Lines
// of the step Protect do not count.
func startOf(lines []line, first int32) (time.Time, error) {
	var before time.Time
	for _, l := range lines {
		m := step().FindStringSubmatch(l.text)
		if m != nil && m[1] == fmt.Sprint(first) && m[2] != "Protect" {
			if before.IsZero() {
				break
			}
			return before, nil
		}
		before = l.at
	}
	return time.Time{}, fmt.Errorf("the output has no line at which the move of ordinal %d begins", first)
}

// summary holds the figures of one row.
type summary struct{ median, p90, p99, max time.Duration }

func summarize(values []time.Duration) summary {
	if len(values) == 0 {
		return summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return summary{
		median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		p90:    sorted[(9*n+9)/10-1], // the smallest that nine tenths do not exceed
		p99:    sorted[(99*n+99)/100-1],
		max:    sorted[n-1],
	}
}

func of(passages []passage, figure func(passage) time.Duration) summary {
	var values []time.Duration
	for _, p := range passages {
		values = append(values, figure(p))
	}
	return summarize(values)
}

// overheadTable returns a table that compares both ways to move a set.
func overheadTable(tool, hand []passage) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	ours, theirs := of(tool, passage.overhead), of(hand, passage.overhead)
	fmt.Fprintln(w, "OVERHEAD PER ORDINAL\tMEDIAN\tP90\tMAX")
	row(w, "stsmigrate", ours)
	row(w, "by hand, kubectl", theirs)
	fmt.Fprintf(w, "ratio\t%.2f\t%.2f\t%.2f\n", ratio(ours.median, theirs.median), ratio(ours.p90, theirs.p90), ratio(ours.max, theirs.max))
	fmt.Fprintln(w, "\nON NEITHER SIDE BEYOND STOP AND START\tMEDIAN\tP90\tMAX")
	row(w, "stsmigrate", of(tool, passage.between))
	row(w, "by hand, kubectl", of(hand, passage.between))
	fmt.Fprintln(w, "\nPOD ON NEITHER SIDE\tMEDIAN\tP90\tMAX")
	row(w, "stsmigrate", of(tool, passage.down))
	row(w, "by hand, kubectl", of(hand, passage.down))
	_ = w.Flush() // into memory
	return b.String()
}

func row(w *tabwriter.Writer, name string, s summary) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, seconds(s.median), seconds(s.p90), seconds(s.max))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }
