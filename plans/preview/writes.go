package preview

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Write is one write that carrying a plan out sends to an API server. The name of a volume that belongs to a claim of an
// ordinal is not in a plan: Name is the claim's then, and OfClaim is set.
type Write struct {
	// Step is the ID of the step that sends it, or "" before the first one.
	Step string `json:"step,omitempty"`
	// Verb is create, patch, update or delete.
	Verb      string     `json:"verb"`
	Side      plans.Side `json:"side"`
	Kind      string     `json:"kind"`
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name"`
	OfClaim   bool       `json:"ofClaim,omitempty"`
	// Times is how often it is sent at most, if that may be more than once.
	Times int    `json:"times,omitempty"`
	What  string `json:"what"`
}

// object names what is written, as the list shows it.
func (w Write) object() string {
	switch {
	case w.OfClaim:
		return "of claim " + w.Namespace + "/" + w.Name
	case w.Namespace == "":
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

// The verbs.
const (
	create = "create"
	patch  = "patch"
	update = "update"
	remove = "delete"
)

// Writes lists the writes of a leg in their order, as far as the plan alone tells them. A write that finds what it is for
// already done is not sent. Waits, restarts and other writers may add saves of the journal, and between two clusters the
// volumes and claims of a wave are made before it leaves.
func Writes(p *plans.Plan, l plans.Leg) []Write {
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

// of returns the writes of a step.
func (w writer) of(s plans.Step) []Write {
	return map[plans.Op]func(plans.Step) []Write{
		plans.Freeze: w.freeze, plans.Protect: w.protect, plans.Share: w.share,
		plans.Tighten: w.tighten, plans.Quiesce: w.ask, plans.Shrink: w.shrink, plans.Vacate: w.vacate, plans.Release: w.release,
		plans.Reserve: w.reserve, plans.Claim: w.claim, plans.Grow: w.grow, plans.Verify: w.ask, plans.Relax: w.relax,
		plans.Retire: w.retire, plans.Settle: w.settle, plans.Unshare: w.unshare, plans.Thaw: w.thaw,
	}[s.Op](s)
}

// begin returns the writes before the first step: the record of the plan, and the mark of the process on whatever
// another process could still be writing.
func (w writer) begin() []Write {
	home := w.p.Destination.Namespace
	name := "stsmigrate-" + w.p.Name
	var out []Write
	moves := w.leg.Opens(w.p)
	if moves {
		out = append(out,
			Write{Verb: create, Side: plans.Destination, Kind: "ConfigMap", Namespace: home, Name: name, What: "the plan"},
			Write{Verb: create, Side: plans.Destination, Kind: "ConfigMap", Namespace: home, Name: name + "-journal", What: "the journal of what is done"})
	}
	out = append(out, Write{Verb: update, Side: plans.Destination, Kind: "Lease", Namespace: home, Name: name, What: "who carries the plan out; renewed meanwhile"}, w.others())
	for _, side := range plans.Sides() {
		if side == plans.Source || !moves || w.p.Existed() {
			out = append(out, w.set(patch, side, "mark it as this run's"))
		}
		if _, existed := w.p.BudgetOn(side); existed || !moves {
			out = append(out, w.budget(patch, side, "mark it as this run's"))
		}
	}
	for _, s := range w.p.Shared {
		out = append(out, Write{Verb: patch, Side: plans.Source, Kind: volume, Name: s.Volume, What: "mark it as this run's"})
	}
	return out
}

const (
	volume = "PersistentVolume"
	claim  = "PersistentVolumeClaim"
)

func (w writer) set(verb string, side plans.Side, what string) Write {
	ref := w.p.On(side)
	return Write{Verb: verb, Side: side, Kind: ref.SetKind(), Namespace: ref.Namespace, Name: ref.Name, What: what}
}

func (w writer) budget(verb string, side plans.Side, what string) Write {
	name, _ := w.p.BudgetOn(side)
	return w.in(side, verb, "PodDisruptionBudget", name, what)
}

// in returns the write of an object in the namespace of a side.
func (w writer) in(side plans.Side, verb, kind, name, what string) Write {
	return Write{Verb: verb, Side: side, Kind: kind, Namespace: w.p.On(side).Namespace, Name: name, What: what}
}

// volumes calls one for each claim of some ordinals whose volume moves.
func (w writer) volumes(ordinals plans.Slice, one func(claim string) []Write) (out []Write) {
	for o := range ordinals.All() {
		for _, c := range w.p.Moved() {
			out = append(out, one(w.p.ClaimName(c.Template, o))...)
		}
	}
	return out
}

// volumeOf returns the write of the volume behind a claim of a side.
func (w writer) volumeOf(side plans.Side, verb, name, what string) Write {
	out := w.in(side, verb, volume, name, what)
	out.OfClaim = true
	return out
}

func (w writer) freeze(plans.Step) []Write {
	what := "mark it, keep its claims when it shrinks (retention policy Retain)"
	out := []Write{w.set(patch, plans.Source, what)}
	for _, d := range w.p.Dependencies {
		if d.Required == "" {
			out = append(out, w.in(plans.Destination, create, d.Kind, d.Name, "copied from the source, if it is absent"))
		}
	}
	if w.p.Existed() {
		out = append(out, w.set(patch, plans.Destination, what))
	} else {
		out = append(out, w.set(create, plans.Destination, fmt.Sprintf("with no ordinals (start %d)", w.p.End())))
	}
	for _, side := range w.p.Exports() {
		out = append(out, w.in(side, create, "ServiceExport", w.p.Names.Service, "the other cluster finds the pods by it, if it is absent"))
	}
	return append(out, w.names(create, "the names of the other side's pods; kept current meanwhile")...)
}

// names returns the writes of what bridges the names.
func (w writer) names(verb, what string) (out []Write) {
	for _, d := range w.p.Directories() {
		if d.Lists == "" {
			out = append(out, Write{Verb: verb, Side: d.On, Kind: "Service", Namespace: d.Namespace, Name: w.p.Names.Service, What: "stands in for the governing Service of the other side"})
		}
		for _, name := range dns.SliceNames(w.p) {
			out = append(out, Write{Verb: verb, Side: d.On, Kind: "EndpointSlice", Namespace: d.Namespace, Name: name, What: what + ", if they have such addresses"})
		}
	}
	return out
}

func (w writer) protect(s plans.Step) []Write {
	return w.volumes(s.Ordinals, func(c string) []Write {
		return []Write{w.volumeOf(plans.Source, patch, c, "reclaim policy Retain, the old one is saved on it")}
	})
}

func (w writer) share(plans.Step) (out []Write) {
	for _, s := range w.p.Shared {
		out = append(out,
			Write{Verb: patch, Side: plans.Source, Kind: volume, Name: s.Volume, What: "reclaim policy Retain, the old one is saved on it"},
			Write{Verb: create, Side: plans.Destination, Kind: volume, Name: w.p.SecondVolume(s), What: "a second object for the same disk"},
			w.in(plans.Destination, create, claim, s.Claim, "bound to that volume"))
	}
	return out
}

func (w writer) tighten(s plans.Step) (out []Write) {
	spec, allowed := pdb.During(w.p, s.Ordinals), pdb.Allowed(w.p, s.Ordinals)
	first := w.leg.Direction == plans.Move && s.Ordinals.End() == w.p.End()
	for _, side := range []plans.Side{s.From, s.To()} {
		if w.p.Slice(side, s.Ordinals, false).Replicas > 0 {
			out = append(out, w.set(patch, side, "pin its rolling updates while the wave is away: a partition above all ordinals, the old one is saved on it; left out if it is pinned, or has the strategy OnDelete"))
		}
	}
	for _, side := range plans.Sides() {
		verb, what := patch, "while the wave is away"
		if _, existed := w.p.BudgetOn(side); first && !existed {
			verb = create
		}
		if s.From == plans.Source {
			what = pdb.Words(spec[side]) + " " + what
			if !first && allowed[side] == 0 {
				what += "; left out if the wave before has just arrived"
			}
		}
		out = append(out, w.budget(verb, side, what))
	}
	return append(out, w.saves(s))
}

// saves returns the saves of the journal for a wave: one before each of its steps that writes.
func (w writer) saves(s plans.Step) Write {
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
func (w writer) others() Write {
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

func (w writer) journal(times int, what string) Write {
	return Write{
		Verb: update, Side: plans.Destination, Kind: "ConfigMap", Namespace: w.p.Destination.Namespace, Name: "stsmigrate-" + w.p.Name + "-journal",
		Times: times, What: what,
	}
}

// ask returns the writes of the gates that are Jobs.
func (w writer) ask(s plans.Step) (out []Write) {
	for _, g := range w.p.GatesAt(s.Op) {
		if !g.IsJob() {
			continue
		}
		for o := range s.Ordinals.All() {
			name := w.p.JobName(g, s, o)
			out = append(out, w.in(s.GateSide(), create, "Job", name, "suspended, for gate "+g.Name),
				w.in(s.GateSide(), patch, "Job", name, "start it"), w.in(s.GateSide(), remove, "Job", name, "when it is complete"))
		}
	}
	return out
}

func (w writer) shrink(s plans.Step) []Write {
	return []Write{w.set(patch, s.From, "scale down to "+w.p.Slice(s.From, s.Ordinals, false).String())}
}

// vacate only looks.
func (w writer) vacate(plans.Step) []Write { return nil }

func (w writer) release(s plans.Step) []Write {
	return w.volumes(s.Ordinals, func(c string) []Write {
		return []Write{w.in(s.From, remove, claim, c, "its volume is protected, and has its manifest")}
	})
}

func (w writer) reserve(s plans.Step) []Write {
	return w.volumes(s.Ordinals, func(c string) (out []Write) {
		if !w.p.OneCluster() && s.To() == plans.Destination {
			out = append(out, w.volumeOf(s.To(), create, c, "the same disk, while the wave is still up; no claim can have it yet"))
		}
		return append(out, w.volumeOf(s.To(), patch, c, "reserved for the claim of this side"))
	})
}

func (w writer) claim(s plans.Step) []Write {
	return w.volumes(s.Ordinals, func(c string) []Write { return []Write{w.in(s.To(), create, claim, c, "bound to that volume")} })
}

func (w writer) grow(s plans.Step) []Write {
	return []Write{w.set(patch, s.To(), "scale up to "+w.p.Slice(s.To(), s.Ordinals, true).String())}
}

func (w writer) relax(s plans.Step) (out []Write) {
	what, own := "the whole budget divided by the new numbers of ordinals, if that changes it", "its own partition, if it is pinned"
	if next, more := w.p.Step(w.leg, s.Seq+1); more && next.Op.Tightens() {
		const atOnce = "; left out if the next wave can go at once"
		what, own = what+atOnce, own+atOnce
	}
	if s.Ordinals != w.p.Ordinals() {
		for _, side := range []plans.Side{s.From, s.To()} {
			out = append(out, w.set(patch, side, own))
		}
	}
	for _, side := range plans.Sides() {
		out = append(out, w.budget(patch, side, what))
	}
	return out
}

func (w writer) retire(s plans.Step) []Write {
	if s.From == plans.Destination && w.p.Existed() {
		return nil // Thaw restores it
	}
	return []Write{w.set(remove, s.From, "it has no ordinals and no pods")}
}

func (w writer) settle(s plans.Step) []Write {
	return w.volumes(s.Ordinals, func(c string) []Write {
		out := []Write{w.in(s.To(), patch, claim, c, "marks off"), w.volumeOf(s.To(), patch, c, "marks off, its own reclaim policy")}
		if !w.p.OneCluster() {
			out = append([]Write{w.volumeOf(s.From, remove, c, "the object only: it is Retain, the disk stays")}, out...)
		}
		return out
	})
}

func (w writer) unshare(s plans.Step) (out []Write) {
	for _, v := range w.p.Shared {
		kept, gone := w.p.SecondVolume(v), v.Volume
		if s.To() == plans.Source {
			kept, gone = gone, kept
		}
		out = append(out,
			w.in(s.From, remove, claim, v.Claim, "its volume is protected"),
			Write{Verb: remove, Side: s.From, Kind: volume, Name: gone, What: "the object only: it is Retain, the disk stays"},
			w.in(s.To(), patch, claim, v.Claim, "marks off"),
			Write{Verb: patch, Side: s.To(), Kind: volume, Name: kept, What: "marks off, its own reclaim policy"})
	}
	return out
}

func (w writer) thaw(s plans.Step) []Write {
	out := w.names(remove, "the names of the other side's pods")
	for _, side := range w.p.Exports() {
		out = append(out, w.in(side, map[bool]string{true: patch, false: remove}[side == s.To() && side == plans.Destination], "ServiceExport", w.p.Names.Service, "if the plan created it"))
	}
	for _, side := range plans.Sides() {
		_, existed := w.p.BudgetOn(side)
		switch {
		case existed:
			out = append(out, w.budget(patch, side, "its own numbers, marks off"))
		case side == plans.Destination && s.To() == side && w.p.Budget.SourceExisted:
			out = append(out, w.budget(patch, side, "a copy of the source's, marks off"))
		default:
			out = append(out, w.budget(remove, side, "it was created for the move"))
		}
	}
	for _, d := range w.p.Dependencies {
		verb, what := patch, "marks off"
		if s.To() == plans.Source {
			verb, what = remove, "it was copied for the move"
		}
		if d.Required == "" {
			out = append(out, w.in(plans.Destination, verb, d.Kind, d.Name, what+", if the plan copied it"))
		}
	}
	if s.From == plans.Destination && w.p.Existed() {
		out = append(out, w.set(patch, s.From, "its own range and retention policy, marks off"))
	}
	out = append(out, w.set(patch, s.To(), "its own retention policy, marks off"))
	if s.To() == plans.Destination && !w.p.Existed() { // a set that was there before had no marks when its revisions were made
		out = append(out, w.in(s.To(), patch, "ControllerRevision", w.p.On(s.To()).Name+"-*", "without what the controller copied of the marks"))
	}
	return out
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

func table(b *strings.Builder, all []Write) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STEP\tVERB\tSIDE\tKIND\tOBJECT\tWHAT")
	for _, w := range all {
		verb := w.Verb
		if w.Times > 1 {
			verb = fmt.Sprintf("%s (up to %d times)", verb, w.Times)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(w.Step, "-"), verb, w.Side, w.Kind, w.object(), w.What)
	}
	_ = t.Flush() // into memory
	fmt.Fprintf(b, "Total: at most %s, beside what is renewed, kept current, or saved while it waits.\n", counted(total(all), "write"))
}

func total(all []Write) (n int) {
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
				add(fmt.Sprintf("%s %s %s on the %s: %s", one.Verb, one.Kind, one.object(), one.Side, one.What))
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
