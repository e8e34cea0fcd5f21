package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// section is a part of a passage that is seen from outside, and so of every way to move a set.
type section struct {
	name, meaning string
	of            func(passage) time.Duration
}

// sections returns the sections in their order. They add up to the passage. All but the first are the
// time on neither side.
func sections() []section {
	return []section{
		{"prepare", "from when the wave before is Ready until the first pod is deleted: the wave is still up", func(p passage) time.Duration { return p.SourceDeleting.Sub(p.begin) }},
		{"terminate", "until the last pod is gone", func(p passage) time.Duration { return p.SourceGone.Sub(p.SourceDeleting) }},
		{"detach, hand over", "until the first pod is created on the destination", passage.between},
		{"attach", "until the last pod runs", func(p passage) time.Duration { return p.DestinationRunning.Sub(p.DestinationCreated) }},
		{"ready", "until the last pod is Ready", func(p passage) time.Duration { return p.DestinationReady.Sub(p.DestinationRunning) }},
	}
}

// spanRows returns the table of the sections, with a row for each move.
func (r *report) spanRows() [][]string {
	head := []string{"move", "waves"}
	for _, s := range sections() {
		head = append(head, s.name)
	}
	rows := [][]string{append(head, "overhead", "longest overhead")}
	for _, m := range r.moves {
		row := []string{m.String(), fmt.Sprint(len(m.passages))}
		for _, s := range sections() {
			row = append(row, both(of(m.passages, s.of)))
		}
		overhead := of(m.passages, passage.overhead)
		rows = append(rows, append(row, both(overhead), inMilliseconds(overhead.max)))
	}
	return rows
}

// both returns the median and the p99 in milliseconds.
func both(s summary) string { return inMilliseconds(s.median) + " / " + inMilliseconds(s.p99) }

func inMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000)
}

// requestRows returns the table of what apply requested per ordinal, with a row for each move whose
// requests were counted.
func (r *report) requestRows() [][]string {
	rows := [][]string{{"move", "reads", "writes", "reviews, dry runs", "all", "KiB of answers", "of them in watches", "seconds"}}
	for _, m := range r.moves {
		if !m.counted {
			continue
		}
		row := []string{m.String()}
		for _, n := range []float64{
			m.requests(traffic.Read), m.requests(traffic.Write), m.requests(traffic.Review, traffic.Trial), m.requests(kinds()...),
			m.each(float64(m.bytes())) / 1024, m.each(float64(m.watched)) / 1024,
		} {
			row = append(row, fmt.Sprintf("%.1f", n))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.3f", m.each(m.took.Seconds()))))
	}
	return rows
}

func kinds() []traffic.Kind {
	return []traffic.Kind{traffic.Read, traffic.Write, traffic.Review, traffic.Trial}
}

// ownRows returns the table of what stsmigrate's own clock says of the time on neither side.
func (r *report) ownRows() [][]string {
	const intro = "each wave was "
	rows := [][]string{{"move", "each wave was"}}
	for _, m := range r.moves {
		for _, l := range m.lines {
			if text, ok := strings.CutPrefix(l.text, intro); ok {
				rows = append(rows, []string{m.String(), text})
			}
		}
	}
	return rows
}

// goalRows returns the table of the goals.
func (r *report) goalRows() [][]string {
	rows := [][]string{{"goal", "at most", "here", ""}}
	for _, g := range r.goals() {
		rows = append(rows, []string{g.what, fmt.Sprintf(g.format, g.most), fmt.Sprintf(g.format, g.have), met(g.ok())})
	}
	return rows
}

// aligned returns rows as a table for a terminal.
func aligned(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for i, row := range rows {
		text := strings.Join(row, "\t")
		if i == 0 {
			text = strings.ToUpper(text)
		}
		fmt.Fprintln(w, text)
	}
	_ = w.Flush() // into memory
	return b.String()
}

// markdown returns rows as a table of a page.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	return b.String()
}

// page returns the page of a run. picture is the name of the file with its picture.
func (r *report) page(picture string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What a move costs\n\n`make bench RESULTS=docs/results/speed.md LARGE=%d`, at commit %s, Kubernetes %s, %d cores, %s.\n\n", r.large, r.commit, r.kubernetes, r.cores, r.date)
	b.WriteString("Sets with one volume per ordinal are moved by `stsmigrate` (without a bridge for names) and by a [script of\n" +
		"kubectl commands](../../test/performance/bench/by-hand.sh), on the same machine as both clusters: etcd, API servers,\n" +
		"controller managers, schedulers and simulated kubelets, whose pods start and stop at once, and which write the\n" +
		"status of their nodes every ten seconds. w is how many ordinals move together, one cluster is a move between two of\n" +
		"its namespaces, and *counted* is a move through proxies that count the requests, which takes longer. The script can\n" +
		"only move one ordinal at a time, between two clusters.\n\n")
	fmt.Fprintf(&b, "## Goals\n\n%s\nWhich components take the time is told under [whose time the overhead is](#whose-time-the-overhead-is).\n\n", markdown(r.goalRows()))
	fmt.Fprintf(&b, "## Where the time of a wave goes\n\n![The medians of the table as bars](%s)\n\nMedian / p99 in milliseconds, of each wave:\n\n%s\n", picture, markdown(r.spanRows()))
	for _, s := range sections() {
		fmt.Fprintf(&b, "- *%s*: %s.\n", s.name, s.meaning)
	}
	b.WriteString("\n*Overhead* is *prepare* and *detach, hand over*: what is neither the stop nor the start of pods. All of it is seen\n" +
		"from outside, by watches of both clusters, in the same way for both. Of the five spans that `stsmigrate` itself\n" +
		"times (terminate, detach, handOver, attach, ready), two cannot be told apart from there: *detach* and *handOver*.\n" +
		"No volume of these clusters is attached to a node, so there is nothing to detach. By its own clock, which begins\n" +
		"with the write that removes the ordinals from their set:\n\n")
	b.WriteString(markdown(r.ownRows()))
	blamed := blameOf(r.find(way{ordinals: r.ordinals, window: 1, counted: true}))
	fmt.Fprintf(&b, "\n## Whose time the overhead is\n\nOf the counted move of %d ordinals between two clusters with w = 1, by step:\n\n%s\n", r.ordinals, markdown(blamed.rows()))
	_, _, own := blamed.shares()
	fmt.Fprintf(&b, "%s\nThe engine's own time is %.2f of the overhead of the script.\n\n",
		blamed, ratio(blamed.each(own), r.overhead(way{ordinals: r.ordinals, window: 1, byHand: true})))
	b.WriteString("Requests that are under way at the same time take their time once. A step *of the one before* belongs to the wave\n" +
		"before, which is Ready then.\n")
	fmt.Fprintf(&b, "\n## Requests\n\nOf `apply`, per ordinal; what is requested once per move counts too. Answers are counted as they are sent, and API\nservers compress large ones.\n\n%s\n", markdown(r.requestRows()))
	fmt.Fprintf(&b, "`plan` of a set of %d sends %d requests.\n\nWhat the orchestrator requests while it moves hundreds of sets at once is in [storm.md](storm.md).\n", planned, r.planned)
	return b.String()
}
