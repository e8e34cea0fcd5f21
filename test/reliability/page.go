package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

// The parts of the proof, as lines name them.
const (
	writes    = "writes"
	pairs     = "pairs"
	states    = "states"
	schedules = "schedules"
	overlaps  = "overlaps"
	runs      = "runs"
	zoo       = "zoo"
	planes    = "control planes"
)

// sum is what a part has played, over all of its lines.
type sum struct {
	played, of, bad int
	seconds         float64
	commits         []string
}

func (s sum) share() string {
	switch {
	case s.of == 0:
		return "none"
	case s.played >= s.of:
		return "all"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(s.played)/float64(s.of))
}

// cases counts what a line stands for: how many cases were played, how many there are, and how many have failed.
func cases(l tally.Line) (played, of, bad int) {
	for _, c := range l.Played {
		if c != tally.Left {
			played++
		}
		if c == tally.Broken {
			bad++
		}
	}
	of = len(l.Played)
	for _, s := range l.Seeds {
		played += int(s.Last - s.First + 1)
	}
	if l.Of > 0 {
		of = l.Of
	}
	if l.Failed {
		bad = max(bad, 1)
	}
	return played, of, bad
}

// total adds up the lines of a part. Each variant of the zoo, and each world that is explored, is one case.
func (r results) total(name string) sum {
	var s sum
	for _, l := range r.of(name) {
		played, of, bad := cases(l)
		switch whole := l.Whole || name == zoo; {
		case name != zoo && name != states:
		case l.Case == "" && (name == zoo || l.World == ""):
			played = 0 // how many there are
		case whole:
			played, of = 1, 0
		default:
			played, of = 0, 0
		}
		s.played, s.of, s.bad, s.seconds = s.played+played, s.of+of, s.bad+bad, s.seconds+l.Seconds
		if !slices.Contains(s.commits, l.Commit) {
			s.commits = append(s.commits, l.Commit)
		}
	}
	slices.Sort(s.commits)
	return s
}

func (r results) of(name string) (out results) {
	for _, l := range r {
		if l.Part == name {
			out = append(out, l)
		}
	}
	return out
}

// paper is a page that grows.
type paper struct{ strings.Builder }

func (p *paper) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table begins a table.
func (p *paper) table(columns ...string) {
	p.row(columns...)
	p.row(slices.Repeat([]string{"---"}, len(columns))...)
}

func (p *paper) row(cells ...string) { p.say("| %s |", strings.Join(cells, " | ")) }

// write returns the page for users, and the one with all tables.
func write(all results, k known) (users, tables string) {
	p := &paper{}
	p.say("%s", strings.TrimSpace(intro))
	p.promised(k)
	p.what(all)
	p.shown(all, k)
	p.left(all)
	p.say("%s", strings.TrimSpace(limits))
	t := &paper{}
	t.say("%s", strings.TrimSpace(tablesIntro))
	t.matrix(all)
	t.explored(all)
	t.bred(all)
	t.promises(k)
	t.happens(k)
	t.bugs(k)
	return p.String(), strings.TrimRight(t.String(), "\n") + "\n"
}

const intro = `
# Reliability

What is promised, what was done to find out whether it holds, and what nobody has shown. The numbers are written
by a program, from what the last runs have kept: what was not run is not claimed.
[The tables](development/reliability-tables.md) have every case by itself.
`

const tablesIntro = `
# Reliability: the tables

What [the page about reliability](../reliability.md) sums up. It is written by a program, from what the last runs have
kept; what was not run is not claimed. How each kind of test works is in [the tests](testing.md).
`

const limits = `
- The simulation models the fields that a move depends on, and does not claim to be Kubernetes. The control
  planes are real, their kubelets are simulated. Kubelets, disks and networks are real in the end-to-end tests on
  kind alone ([what they measured](results/e2e.md), [with outages](results/outages.md)).
- Orders of events are explored whole in small worlds. In larger ones they are drawn from seeds.
- In most of the small worlds the engine that is explored has no memory: a new one makes every act, and knows what
  the journal says. In the others each process keeps its memory, and the worlds with two ordinals are explored in
  part. Drains, the pace of a run, and writes that overlap a look are in neither. The schedules have them, and a
  move is played to the same end without any acceleration.
- What no look has seen voids no answer (S19). In an abort, a pod that comes and goes between two looks, of an
  ordinal that neither look found on either side, leaves nothing by which its life could be told.

## What is not promised

- Failures of other origin may take more ordinals down than d: a node that fails takes its pods with it. Nothing
  is begun then, but what is down is down.
- A pod that was deleted by force may still run. S1 holds if its node is Ready, or is known to be gone for good:
  by the taint out-of-service, or by the word of the user. Where its volume is never attached, S1 rests on the
  kubelet ending its containers within their grace period, which is waited for.
- Storage that lets two nodes write to one disk has to fence one of them itself.
- Quorum is the application's: this program waits for readiness, availability and the gates of the plan.
- A volume that another writer deletes by force, or a disk that is destroyed beside Kubernetes, is lost.

## See for yourself

On any machine with Go:

    make reliability           # all of it: some days on two cores
    make reliability FOR=2h    # as much as fits, the parts in turn

Both write these pages anew, from what was played and what was kept before. In your own clusters, a plan shows every
write before it is made, a dry run asks every check without a write, and verify compares both clusters with the
journal at any moment ([commands](commands.md)).
`

// promised lists the sentences of the README, and the names of the invariants.
func (p *paper) promised(k known) {
	p.say("\n## What is promised\n")
	var safety []string
	for _, x := range k.Promises {
		if x.ID == "" {
			p.say("- %s", x.Promise)
		} else if x.ID[0] == 'S' {
			safety = append(safety, x.ID+" "+x.Promise)
		}
	}
	p.say("\nExactly, these are the [invariants](invariants.md). What never happens, whoever dies or interferes: %s.", strings.Join(safety, ", "))
	p.say("What comes in the end, when faults stop: the rows L of the same page.")
}

// shown says what the tables have.
func (p *paper) shown(all results, k known) {
	explored := 0
	for _, l := range all.of(states) {
		explored += l.Number
	}
	p.say("")
	p.say("- The small worlds have %s states. [Each world](development/reliability-tables.md#every-order-of-events-in-small-worlds),", number(explored))
	p.say("  and whether all of its states were reached.")
	p.say("- [Each fault at each write](development/reliability-tables.md#one-fault-at-every-write).")
	p.say("- [Which tests fail](development/reliability-tables.md#what-fails-when-a-promise-is-broken) for each of %s promises.", number(len(k.Promises)))
	p.say("- [What happens to a move](development/reliability-tables.md#what-happens-to-a-move-and-where) in the world, in %s kinds, and where it is played.", number(len(k.World)))
	p.say("- [What was found on the way](development/reliability-tables.md#what-was-found-on-the-way): %s faults of this program, what found them, and what was done.\n", number(len(k.Bugs)))
}

// left begins with what was not played of what there is.
func (p *paper) left(all results) {
	p.say("## What was not shown\n")
	for _, part := range []string{writes, pairs, states, schedules, runs, overlaps, zoo, planes} {
		if s := all.total(part); s.played < s.of {
			p.say("- Of %s, %s of %s were not played whole.", part, number(s.of-s.played), number(s.of))
		}
	}
}

// what says how much of each part was played.
func (p *paper) what(all results) {
	p.say("\n## What was done\n")
	p.table("part", "one case is", "played", "of", "share", "broken", "minutes of the tests", "commit")
	for _, row := range []struct{ part, is string }{
		{writes, "one fault at one write of a course of the simulation: the end has to be that of a run without faults"},
		{pairs, "two faults, at two writes of one course"},
		{states, "a small world: every order in which controllers and processes can act, until no state is new"},
		{schedules, "a seed: pods, nodes, API servers and writes fail, and the user turns round, until the plan ends"},
		{runs, "a seed: two machines, whose clocks disagree, run processes that die, by a clock of the test"},
		{overlaps, "a seed: up to three processes carry out one plan at once, and die"},
		{zoo, "a guard that is taken out of the product: its tests have to fail"},
		{planes, "one fault at one write of the released binary, on real control planes"},
	} {
		s := all.total(row.part)
		p.row(row.part, row.is, number(s.played), number(s.of), s.share(), number(s.bad), minutes(s.seconds), ticked(s.commits))
	}
	if f := all.of(fuzzing); len(f) > 0 {
		n, s := 0, all.total(fuzzing)
		for _, l := range f {
			n += l.Number
		}
		p.row(fuzzing, "an input of a reader of plans, journals, kubeconfigs, names or budgets", number(n), "no end", "-", number(s.bad), minutes(s.seconds), ticked(s.commits))
	}
	p.say("\nIn the simulation the safety invariants are checked after every write and after every act of a controller, twice:")
	p.say("by the checks of the simulation, and by the witness of the tests on real control planes, which shares no code")
	p.say("with either and sees nothing but the versions of the objects.")
}

func ticked(commits []string) string {
	if len(commits) == 0 {
		return "-"
	}
	return "`" + strings.Join(commits, "` `") + "`"
}

func minutes(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", max(seconds/60, 1))
}

// number writes a number with a space after each thousand.
func number(n int) string {
	text := fmt.Sprint(n)
	for k := len(text) - 3; k > 0; k -= 3 {
		text = text[:k] + " " + text[k:]
	}
	return text
}

func (p *paper) matrix(all results) {
	p.say("\n## One fault at every write\n")
	p.say("![Which faults were played at which writes](../images/reliability.svg)\n")
	p.say("A row is a course and a fault, a column is a write of the course, the journal's included. What is green was played")
	p.say("and held, what is empty was not played, what is orange was broken.\n")
	p.table("course", "kinds of faults", "cases", "played", "broken")
	for _, part := range []string{writes, planes} {
		type row struct{ kinds, played, of, bad int }
		rows := map[string]row{}
		for _, l := range all.of(part) {
			played, of, bad := cases(l)
			course, _, _ := strings.Cut(l.Case, ": ")
			if part == planes {
				course = "the released binary on control planes"
			}
			name := course + ", " + l.World
			r := rows[name]
			rows[name] = row{r.kinds + 1, r.played + played, r.of + of, r.bad + bad}
		}
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			r := rows[name]
			p.row(name, number(r.kinds), number(r.of), number(r.played), number(r.bad))
		}
	}
}

func (p *paper) explored(all results) {
	p.say("\n## Every order of events in small worlds\n")
	p.say("Which engine is explored: in most of these worlds one without memory. A new one makes every act there, and knows")
	p.say("what the journal says, as after a death between any two acts. In the worlds of engines with memory each process")
	p.say("keeps all that its engine remembers from one act to the next, and that is a part of the state: the journal as it")
	p.say("was read, batches, what was read ahead, and whether a wave follows at once. Its clients keep no answers there, and")
	p.say("it has no clock. Drains, the pace of a run and writes that overlap a look are in none of these worlds. They are")
	p.say("in the schedules below, and a move is played to the same end without any acceleration.\n")
	p.table("world", "states", "all of them", "broken")
	for _, l := range all.of(states) {
		if l.World == "" {
			continue // how many there are
		}
		p.row(l.World, number(l.Number), map[bool]string{true: "yes", false: "no"}[l.Whole], number(map[bool]int{true: 1}[l.Failed]))
	}
	p.say("\n## Schedules drawn from seeds\n")
	p.say("A schedule that fails is played again with fewer ordinals and kinds of failures for as long as it still fails, and")
	p.say("printed as a line that plays it again, byte for byte, with its transcript.\n")
	p.table("part", "world", "seeds", "broken")
	for _, part := range []string{schedules, overlaps, runs, pairs} {
		for _, l := range all.of(part) {
			var ranges []string
			for _, s := range l.Seeds {
				ranges = append(ranges, fmt.Sprintf("%d to %d", s.First, s.Last))
			}
			p.row(part, l.World, strings.Join(ranges, ", "), number(map[bool]int{true: 1}[l.Failed]))
		}
	}
}

// bred is the zoo, by package.
func (p *paper) bred(all results) {
	p.say("\n## The zoo\n")
	p.say("Each variant takes one guard out of the product. It is caught if each of the tests that are named for it fails.\n")
	type row struct{ caught, played, of int }
	rows := map[string]*row{}
	var missed []string
	for _, l := range all.of(zoo) {
		if rows[l.World] == nil {
			rows[l.World] = &row{}
		}
		r := rows[l.World]
		switch {
		case l.Case == "":
			r.of = l.Of
		case l.Failed:
			r.played++
			missed = append(missed, l.Case)
		default:
			r.played++
			r.caught++
		}
	}
	p.table("package", "caught", "played", "variants")
	var sum row
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		p.row("`"+name+"`", number(r.caught), number(r.played), number(r.of))
		sum = row{sum.caught + r.caught, sum.played + r.played, sum.of + r.of}
	}
	p.row("all", number(sum.caught), number(sum.played), number(sum.of))
	if len(missed) > 0 {
		p.say("\nNot caught: %s.", strings.Join(missed, ", "))
	}
}

func (p *paper) promises(k known) {
	p.say("\n## What fails when a promise is broken\n")
	p.table("", "promise", "tests")
	for _, x := range k.Promises {
		p.row(x.ID, x.Promise, tests(x.Tests))
	}
}

func tests(names []string) string {
	var out []string
	for _, n := range names {
		folder, name, _ := strings.Cut(n, " ")
		out = append(out, fmt.Sprintf("`%s` (`%s`)", name, folder))
	}
	return strings.Join(out, ", ")
}

func (p *paper) happens(k known) {
	p.say("\n## What happens to a move, and where\n")
	p.table("what happens", "how it is played", "tests")
	for _, h := range k.World {
		p.row(h.What, h.How, tests(h.Tests))
	}
}

func (p *paper) bugs(k known) {
	p.say("\n## What was found on the way\n")
	p.say("Faults of the product that a part of the proof, or a review by readers who tried to break it, has found, and what was done about each.\n")
	p.table("found by", "what was wrong", "what was done")
	for _, b := range k.Bugs {
		fix := b.Fix
		if b.Decision > 0 {
			fix += fmt.Sprintf(" (decision %d)", b.Decision)
		}
		p.row(b.Found, b.What, fix)
	}
	p.say("")
}
