package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// part is a step and the kind of work on which a stretch of a passage was spent.
type part struct {
	step string
	what what
}

type what int

const (
	noticed what = iota // the engine detects a change of the pod
	working             // the engine looks, journals and writes
	obeyed              // the set's controller acts on a write
	awaited             // the engine waits, and then continues
)

func (w what) String() string {
	return []string{"detects the change of the pod", "looks, journals, writes", "the set's controller acts", "waits, then continues"}[w]
}

// spent is the duration of a part, and the duration and number of the engine's requests in it.
type spent struct {
	took, asking time.Duration
	calls        int
}

// sign is one event of a passage.
type sign struct {
	at      time.Time
	step    string
	waiting bool // the engine reported that it waits
	news    bool // the engine reported a change that it detected
	pod     bool // an event of the pod, reported by the witness
	busy    bool // from here on the pod stops or starts
}

// stretches splits the overhead of one passage into parts. The time between two signs belongs to
// the second sign, or to the wait that the first sign announced. The time in which the pod stops or
// starts is left out, so the parts add up to the overhead.
func (p passage) stretches(lines []line, calls []traffic.Call) map[part]spent {
	out := map[part]spent{}
	previous := sign{at: p.begin, pod: true}
	waiting := "" // the step that waits
	busy := false
	for _, s := range p.signs(lines) {
		var k part
		switch {
		case s.pod:
			k = part{s.step, obeyed}
		case previous.pod && s.news:
			k = part{s.step, noticed}
		case waiting != "" && !previous.pod:
			k = part{waiting, awaited}
		default:
			k = part{s.step, working}
		}
		if !busy {
			out[k] = out[k].plus(previous.at, s.at, calls)
		}
		if s.pod {
			busy = s.busy
		} else {
			waiting = ""
			if s.waiting {
				waiting = s.step
			}
		}
		previous = s
	}
	return out
}

// plus adds a stretch and the requests that were sent in it, except those for the Lease.
func (s spent) plus(from, to time.Time, calls []traffic.Call) spent {
	s.took += to.Sub(from)
	for _, c := range calls {
		if !c.At.Before(from) && c.At.Before(to) && c.Resource != "leases" {
			s.calls++
			s.asking += min(c.Took, to.Sub(c.At))
		}
	}
	return s
}

// before marks the steps that finish the move of the previous ordinal.
const before = " (of the one before)"

// signs returns the events of the passage, in order.
func (p passage) signs(lines []line) []sign {
	signs := []sign{
		{at: p.SourceDeleting, step: "Shrink", pod: true, busy: true},
		{at: p.SourceGone, step: "Vacate", pod: true},
		{at: p.DestinationCreated, step: "Grow", pod: true, busy: true},
		{at: p.DestinationReady, step: "Grow", pod: true},
	}
	form := step()
	for _, l := range lines {
		m := form.FindStringSubmatch(l.text)
		if m == nil || !l.at.After(p.begin) || l.at.After(p.DestinationReady) {
			continue
		}
		s := sign{
			at: l.at, step: m[2], waiting: strings.HasPrefix(m[3], "waiting:"),
			news: strings.HasPrefix(m[3], "free:") || strings.HasPrefix(m[3], "available"),
		}
		if m[1] != p.wave.String() {
			s.step += before
		}
		signs = append(signs, s)
	}
	slices.SortStableFunc(signs, func(a, b sign) int { return a.at.Compare(b.at) })
	return signs
}

// stepTable returns a table of the overhead by part, in the order of the steps.
func stepTable(passages []passage, lines []line, calls []traffic.Call) string {
	took := map[part][]time.Duration{}
	total := map[part]spent{}
	var all spent
	for i, p := range passages {
		for k, s := range p.stretches(lines, calls) {
			if took[k] == nil {
				took[k] = make([]time.Duration, len(passages))
			}
			took[k][i] = s.took
			total[k], all = total[k].and(s), all.and(s)
		}
	}
	parts := slices.SortedFunc(maps.Keys(total), func(a, b part) int {
		return cmp.Or(cmp.Compare(slices.Index(order(), a.step), slices.Index(order(), b.step)), cmp.Compare(a.what, b.what))
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "OVERHEAD BY STEP (while counting)\t\tMEDIAN\tP90\tMAX\tSHARE\tREQUESTS\tTIME IN THEM")
	n := len(passages)
	for _, k := range parts {
		s, t := summarize(took[k]), total[k]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%s\n", k.step, k.what, milliseconds(s.median), milliseconds(s.p90), milliseconds(s.max),
			percent(t.took, all.took), float64(t.calls)/float64(n), milliseconds(t.asking/time.Duration(n)))
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "\n%s", attribute(total, all))
	return b.String()
}

// attribute returns the shares of the overhead by cause. While the set's controller acts, all time
// belongs to the control plane. In a wait, the time outside requests belongs to the control plane.
// All other time belongs to the engine.
func attribute(total map[part]spent, all spent) string {
	var cluster time.Duration
	for k, s := range total {
		switch k.what {
		case obeyed:
			cluster += s.took
		case awaited:
			cluster += s.took - s.asking
		case noticed, working:
		}
	}
	asking := all.asking
	for k, s := range total {
		if k.what == obeyed { // the engine's requests do not cause this time
			asking -= s.asking
		}
	}
	return fmt.Sprintf("of the overhead: %s in the engine's requests, %s in the engine between them, %s waiting for the control plane\n",
		percent(asking, all.took), percent(all.took-asking-cluster, all.took), percent(cluster, all.took))
}

func (s spent) and(o spent) spent {
	return spent{s.took + o.took, s.asking + o.asking, s.calls + o.calls}
}

func percent(part, whole time.Duration) string {
	return fmt.Sprintf("%.0f%%", 100*ratio(part, whole))
}

// order returns the steps of a passage, in their order.
func order() []string {
	return []string{
		"Grow" + before, "Relax" + before, "Tighten", "Shrink", "Vacate", "Release", "Reserve", "Claim", "Grow",
	}
}
