package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// wave is the ordinals that move together: first to last.
type wave struct{ first, last int32 }

// String returns the wave as a line of output names it.
func (w wave) String() string {
	if w.first == w.last {
		return strconv.Itoa(int(w.last))
	}
	return fmt.Sprintf("%d..%d", w.first, w.last)
}

// waveBelow returns the next wave when the ordinals below end have not moved yet.
func waveBelow(end, window int32) wave { return wave{max(end-window, 0), end - 1} }

// passage is the move of one wave. It begins when the previous wave is Ready on the destination (for
// the first wave: when its move begins) and ends when this wave is Ready there. Its pods stop from
// when the first of them is deleted until the last is gone, and start from when the first is created
// until the last is Ready.
type passage struct {
	wave
	begin time.Time
	witness.Span
}

// passagesOf returns the passages of the waves in the order in which they move, highest first. It
// fails if a move was not observed in full.
func passagesOf(start time.Time, spans map[int32]witness.Span, ordinals, window int32) ([]passage, error) {
	var out []passage
	for end := ordinals; end > 0; end -= window {
		w := waveBelow(end, window)
		p := passage{w, start, spans[w.last]}
		for o := w.first; o <= w.last; o++ {
			if err := seen(o, start, spans[o]); err != nil {
				return nil, err
			}
			p.Span = together(p.Span, spans[o])
		}
		if err := seen(w.last, start, p.Span); err != nil {
			return nil, err
		}
		start = p.DestinationReady
		out = append(out, p)
	}
	return out, nil
}

// seen returns an error if the move of an ordinal was not observed in full.
func seen(o int32, begin time.Time, s witness.Span) error {
	times := []time.Time{begin, s.SourceDeleting, s.SourceGone, s.DestinationCreated, s.DestinationRunning, s.DestinationReady}
	if s.SourceDeleting.IsZero() || !slices.IsSortedFunc(times, time.Time.Compare) {
		return fmt.Errorf("the move of ordinal %d was not seen in full: %v", o, times)
	}
	return nil
}

// together returns the span of two ordinals of one wave.
func together(a, b witness.Span) witness.Span {
	return witness.Span{
		SourceDeleting: earlier(a.SourceDeleting, b.SourceDeleting), SourceGone: later(a.SourceGone, b.SourceGone),
		DestinationCreated: earlier(a.DestinationCreated, b.DestinationCreated), DestinationRunning: later(a.DestinationRunning, b.DestinationRunning),
		DestinationReady: later(a.DestinationReady, b.DestinationReady),
	}
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

// step returns the pattern of a line about a wave: the time of day, which the script leaves out,
// the pods, the step and the rest. It captures the wave, the step and the rest.
func step() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[\dTZ:.-]+\s+)?` + fixture.Name + `-(\d+(?:\.\.\d+)?) (\w+)\s+(.*)$`)
}

// startOf returns when the move of the first wave began: the time of the last line before the lines
// about that wave. The work that is done once for the whole set precedes that line. Lines of the
// step Protect do not count.
func startOf(lines []line, first string) (time.Time, error) {
	var before time.Time
	for _, l := range lines {
		m := step().FindStringSubmatch(l.text)
		if m != nil && m[1] == first && m[2] != "Protect" {
			if before.IsZero() {
				break
			}
			return before, nil
		}
		before = l.at
	}
	return time.Time{}, fmt.Errorf("the output has no line at which the move of %s-%s begins", fixture.Name, first)
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
