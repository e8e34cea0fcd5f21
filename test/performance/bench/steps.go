package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	return []string{"detects the change of the pod", "looks, journals, writes", "has written: the set's controller acts", "waits, then continues"}[w]
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

// plus adds a stretch and the requests that were sent in it, except those for the Lease. Requests that are under way at
// the same time take their time once.
func (s spent) plus(from, to time.Time, calls []traffic.Call) spent {
	s.took += to.Sub(from)
	until := from // what the requests before take
	for _, c := range calls {
		end := c.At.Add(c.Took)
		if c.Resource == "leases" || !c.At.Before(to) || !end.After(from) {
			continue
		}
		if !c.At.Before(from) {
			s.calls++
		}
		if end = earlier(end, to); end.After(until) {
			s.asking += end.Sub(later(c.At, until))
			until = end
		}
	}
	return s
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

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

// blame is what the passages of a move spent, by part. Its calls are in the order in which they were sent.
type blame struct {
	waves int
	took  map[part][]time.Duration
	total map[part]spent
	all   spent
}

func blameOf(m *measured) *blame {
	b := &blame{waves: len(m.passages), took: map[part][]time.Duration{}, total: map[part]spent{}}
	calls := slices.Clone(m.apply)
	slices.SortFunc(calls, func(a, b traffic.Call) int { return a.At.Compare(b.At) })
	for i, p := range m.passages {
		for k, s := range p.stretches(m.lines, calls) {
			if b.took[k] == nil {
				b.took[k] = make([]time.Duration, b.waves)
			}
			b.took[k][i] = s.took
			b.total[k], b.all = b.total[k].and(s), b.all.and(s)
		}
	}
	return b
}

// rows returns the table of the overhead by part, in the order of the steps.
func (b *blame) rows() [][]string {
	rows := [][]string{{"step", "in which the engine", "median", "p90", "longest", "share of the overhead", "requests", "time in them"}}
	parts := slices.SortedFunc(maps.Keys(b.total), func(a, b part) int {
		return cmp.Or(cmp.Compare(slices.Index(order(), a.step), slices.Index(order(), b.step)), cmp.Compare(a.what, b.what))
	})
	for _, k := range parts {
		s, t := summarize(b.took[k]), b.total[k]
		rows = append(rows, []string{
			k.step, k.what.String(), milliseconds(s.median), milliseconds(s.p90), milliseconds(s.max),
			percent(t.took, b.all.took), fmt.Sprintf("%.1f", float64(t.calls)/float64(b.waves)), milliseconds(b.each(t.asking)),
		})
	}
	return rows
}

func (b *blame) each(d time.Duration) time.Duration { return d / time.Duration(max(b.waves, 1)) }

// shares returns the overhead by cause, which adds up to it. While the set's controller acts, all time is that of the
// controllers. In a wait, the time outside requests is theirs. All other time outside requests is the engine's.
func (b *blame) shares() (answers, controllers, engine time.Duration) {
	for k, s := range b.total {
		switch k.what {
		case obeyed:
			controllers += s.took
		case awaited:
			controllers += s.took - s.asking
			answers += s.asking
		case noticed, working:
			answers += s.asking
		}
	}
	return answers, controllers, b.all.took - answers - controllers
}

// String returns a list of the shares.
func (b *blame) String() string {
	answers, controllers, engine := b.shares()
	of := func(d time.Duration) string {
		return fmt.Sprintf("%s (%s)", milliseconds(b.each(d)), percent(d, b.all.took))
	}
	return fmt.Sprintf("Of the overhead of a wave, %s on average:\n\n- API servers answer requests of the engine for %s;\n- controllers act while it waits for %s;\n- the engine itself takes %s.\n",
		milliseconds(b.each(b.all.took)), of(answers), of(controllers), of(engine))
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
