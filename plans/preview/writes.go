package preview

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/parts"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Writes lists the writes of a leg in their order, as far as the plan alone tells them. A write that finds what it is for
// already done is not sent. Waits, restarts and other writers may add saves of the journal, and between two clusters the
// volumes and claims of a wave are made before it leaves.
func Writes(p *plans.Plan, l plans.Leg) []part.Write {
	w := writer{p: p, leg: l}
	out := w.begin()
	for seq := l.First; ; seq++ {
		step, more := p.Step(l, seq)
		if !more {
			return out
		}
		for _, one := range w.of(step) {
			one.Step = step.ID()
			out = append(out, one)
		}
	}
}

// writer derives writes from the steps of one leg.
type writer struct {
	p   *plans.Plan
	leg plans.Leg
}

// of returns the writes of a step. A wave begins with the budgets, and its journal is counted there.
func (w writer) of(s plans.Step) []part.Write {
	out := parts.Writes(w.p, w.leg, s)
	if s.Op.Tightens() {
		out = append(out, w.saves(s))
	}
	return out
}

// begin returns the writes before the first step: the record of the plan, and the mark of the process on whatever
// another process could still be writing.
func (w writer) begin() []part.Write {
	home := w.p.Destination.Namespace
	name := "stsmigrate-" + w.p.Name
	var out []part.Write
	moves := w.leg.Opens(w.p)
	if moves {
		out = append(out,
			part.Write{Verb: part.Create, Side: plans.Destination, Kind: "ConfigMap", Namespace: home, Name: name, What: "the plan"},
			part.Write{Verb: part.Create, Side: plans.Destination, Kind: "ConfigMap", Namespace: home, Name: name + "-journal", What: "the journal of what is done"})
	}
	out = append(out, part.Write{Verb: part.Update, Side: plans.Destination, Kind: "Lease", Namespace: home, Name: name, What: "who carries the plan out; renewed meanwhile"}, w.others())
	return append(out, parts.Marks(w.p, w.leg)...)
}

// saves returns the saves of the journal for a wave: one before each of its steps that writes.
func (w writer) saves(s plans.Step) part.Write {
	n := 4 // Tighten, Shrink, Grow and Relax
	if len(w.p.Moved()) > 0 {
		n += 3 // Release, Reserve and Claim
	}
	if len(w.p.Gates) > 0 {
		n += 2 // Quiesce and Verify
	}
	for _, g := range w.p.Gates {
		if g.IsJob() { // that it passed, BEFORE its Job is deleted
			n += int(s.Ordinals.Replicas)
		}
	}
	return w.journal(n, "what is about to be done for "+w.p.Pods(s.Ordinals)+"; more saves if it waits")
}

// others returns the saves of the journal for the steps that belong to no wave.
func (w writer) others() part.Write {
	n := 3 // by which process it is carried out: at its start, when others are shut out, and at its end
	for seq := w.leg.First; ; seq++ {
		s, more := w.p.Step(w.leg, seq)
		if !more {
			return w.journal(n, "who carries the plan out, and what is about to be done for the whole plan")
		}
		switch {
		case s.Op == plans.Freeze:
			n += 2 // the old values of each set, BEFORE it is changed
		case s.Whole(), !s.Moves() && int(s.Ordinals.Start-w.p.Start)%s.Op.Batch() == 0: // one announces many
			n++
		}
	}
}

func (w writer) journal(times int, what string) part.Write {
	return part.Write{
		Verb: part.Update, Side: plans.Destination, Kind: "ConfigMap", Namespace: w.p.Destination.Namespace, Name: "stsmigrate-" + w.p.Name + "-journal",
		Times: times, What: what,
	}
}

// RenderWrites lists the writes of the move, and those of `finalize` after it.
func RenderWrites(p *plans.Plan, l plans.Leg) string {
	var b strings.Builder
	b.WriteString("\nEvery write of the move, in order:\n\n")
	table(&b, Writes(p, l))
	b.WriteString("\nEvery write of `finalize`, after the last ordinal:\n\n")
	table(&b, Writes(p, plans.Leg{Direction: plans.Finalize, First: 1}))
	return b.String()
}

func table(b *strings.Builder, all []part.Write) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STEP\tVERB\tSIDE\tKIND\tOBJECT\tWHAT")
	for _, w := range all {
		verb := string(w.Verb)
		if w.Times > 1 {
			verb = fmt.Sprintf("%s (up to %d times)", verb, w.Times)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(w.Step, "-"), verb, w.Side, w.Kind, w.Object(), w.What)
	}
	_ = t.Flush() // into memory
	fmt.Fprintf(b, "Total: at most %s, beside what is renewed, kept current, or saved while it waits.\n", counted(total(all), "write"))
}

func total(all []part.Write) (n int) {
	for _, w := range all {
		n += max(w.Times, 1)
	}
	return n
}

// RenderTurn lists what a leg does from a step on, in its order, for the user who asks for another direction: a line for
// each wave, then the writes that end the plan.
func RenderTurn(p *plans.Plan, l plans.Leg, from int) string {
	w, lines := writer{p: p, leg: l}, []string{}
	add := func(line string) {
		if n := len(lines); n == 0 || lines[n-1] != line { // a wave has several steps
			lines = append(lines, line)
		}
	}
	for seq := from; ; seq++ {
		step, more := p.Step(l, seq)
		switch {
		case !more:
			return numbered(p, l.Direction, lines)
		case step.Moves():
			line := fmt.Sprintf("%s: from %s to %s", story(p, step.Ordinals), p.On(step.From), p.On(step.To()))
			if (l.Direction == plans.Abort || l.Turned) && step.Ordinals == p.FirstWave(l) && !l.Arrived {
				line += ", as far as it has left"
			}
			add(line)
		case step.Op.Scope() == plans.OfOrdinal && len(p.Moved()) > 0:
			add("patch the volumes and claims of each ordinal: marks off, its own reclaim policy")
		case step.Op.Scope() != plans.OfOrdinal:
			for _, one := range w.of(step) {
				add(fmt.Sprintf("%s %s %s on the %s: %s", one.Verb, one.Kind, one.Object(), one.Side, one.What))
			}
		}
	}
}

// numbered renders what a leg does, a line for each thing.
func numbered(p *plans.Plan, direction plans.Direction, lines []string) string {
	if len(lines) == 0 {
		return fmt.Sprintf("plan %s would rest as it is, and nothing would move\n", p.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of plan %s would do this, in this order:\n", strings.ToLower(string(direction)), p.Name)
	for k, line := range lines {
		fmt.Fprintf(&b, "%3d. %s\n", k+1, line)
	}
	if direction == plans.Finalize {
		b.WriteString("There is no way back.\n")
	}
	return b.String()
}
