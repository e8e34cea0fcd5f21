// Package preview describes in words what a plan will do, for the user who approves it.
package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Render describes what a plan will do: first what holds for all ordinals, then one line for each
// wave of the leg, in the order in which they move.
func Render(p *plans.Plan, l plans.Leg) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan %s (%s)\n", p.Name, p.ID)
	fmt.Fprintf(&b, "  source       StatefulSet %s %s\n", p.Source, p.Ordinals())
	there := "created from the source, with no ordinals yet"
	if p.Existed() {
		there = "exists, with no ordinals"
	}
	fmt.Fprintf(&b, "  destination  StatefulSet %s (%s)\n", p.Destination, there)
	fmt.Fprintf(&b, "  unavailable  at most %d ordinal(s) at once, over both sides together\n", p.MaxUnavailable)
	if p.Window > 1 {
		fmt.Fprintf(&b, "  window       %d ordinals move together\n", p.Window)
	}
	renderBudget(&b, p)
	for _, c := range p.Claims {
		fmt.Fprintf(&b, "  volumes      claim template %s: %s\n", c.Template, words(c.Mode))
	}
	if len(p.Claims) == 0 {
		b.WriteString("  volumes      none\n")
	}
	renderStorage(&b, p)
	renderChanges(&b, p)
	renderDependencies(&b, p)
	renderNames(&b, p)
	b.WriteString(renderClients("  clients      ", p))
	if p.Placeholder.Proof != "" {
		fmt.Fprintf(&b, "  placeholder  %s\n", placeholders(p.Placeholder))
	}
	for _, g := range p.Gates {
		fmt.Fprintf(&b, "  gate         %s\n", gate(g))
		for _, line := range runs(g) {
			fmt.Fprintf(&b, "  gate         %s runs %s\n", g.Name, line)
		}
	}
	if len(p.Ignored) > 0 {
		fmt.Fprintf(&b, "  ignored      the findings of these checks: %s\n", strings.Join(p.Ignored, ", "))
	}
	b.WriteString("\nBefore the first ordinal: volumes and claims are protected (reclaim and retention policies to Retain, old values saved).\n\n")
	renderWaves(&b, p, l)
	if l.Lowest > p.Start {
		wave := plans.Slice{Start: l.Lowest}
		fmt.Fprintf(&b, "\nThe move stops there in a split: the source keeps %s, the destination has %s. `resume` continues it.\n", p.Slice(plans.Source, wave, true), p.Slice(plans.Destination, wave, true))
	}
	if p.Names.Service != "" && p.FindAs(p.Start, plans.Source) != p.FindAs(p.Start, plans.Destination) {
		b.WriteString("\n" + RenderNames(p))
	}
	b.WriteString("\nAfter the last ordinal: both sides stay unchanged until `finalize` (cleans the source up) or `abort` (moves everything back).\n")
	return b.String()
}

// renderWaves writes one line for each wave: where the ordinals are after it, what the budgets say while it is away, and
// how many ordinals are down then. The last line has the totals.
func renderWaves(b *strings.Builder, p *plans.Plan, l plans.Leg) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ORDINAL\tSOURCE\tDESTINATION\tBUDGET OF THE SOURCE\tOF THE DESTINATION\tDOWN\tWHAT HAPPENS")
	waves, moved := 0, int32(0)
	for wave := range p.Waves(l) {
		budgets := Budgets(p, wave)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", ordinals(wave), p.Slice(plans.Source, wave, false), p.Slice(plans.Destination, wave, true),
			budgets[plans.Source], budgets[plans.Destination], wave.Replicas, p.MaxUnavailable, story(p, wave))
		waves, moved = waves+1, moved+wave.Replicas
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(b, "Total: %s in %s", counted(int(moved), "ordinal"), counted(waves, "wave"))
	if len(p.Claims) > 0 {
		fmt.Fprintf(b, ", %s", counted(int(moved)*len(p.Claims), "volume"))
	}
	b.WriteString(".\n")
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func renderStorage(b *strings.Builder, p *plans.Plan) {
	for _, s := range p.Shared {
		fmt.Fprintf(b, "  volumes      claim %s, shared by all ordinals: given to the destination before the first one moves (volume %s)\n", s.Claim, p.SecondVolume(s))
	}
	say := func(what string, names map[string]string) {
		for _, from := range slices.Sorted(maps.Keys(names)) {
			fmt.Fprintf(b, "  renamed      %s %s -> %s\n", what, from, names[from])
		}
	}
	say("StorageClass", p.Storage.Classes)
	say("CSI driver", p.Storage.Drivers)
	for _, t := range p.Storage.Topology {
		fmt.Fprintf(b, "  renamed      node label %s -> %s\n", t.Key, cmp.Or(t.As, t.Key))
		say("value of "+t.Key, t.Values)
	}
	say("Secret", p.Storage.Secrets)
	for _, key := range slices.Sorted(maps.Keys(p.Storage.VolumeAttributes)) {
		say("volume attribute "+key, p.Storage.VolumeAttributes[key])
	}
}

func renderChanges(b *strings.Builder, p *plans.Plan) {
	for _, c := range p.Changes {
		fmt.Fprintf(b, "  patched      %s\n", c)
	}
	if len(p.Patches) > 0 && len(p.Changes) == 0 {
		b.WriteString("  patched      nothing: the set already has the values of the patches\n")
	}
}

func renderDependencies(b *strings.Builder, p *plans.Plan) {
	for _, d := range p.Dependencies {
		if d.Required != "" {
			fmt.Fprintf(b, "  required     %s, which must already exist on the destination (%s)\n", d, d.Required)
			continue
		}
		if d.Twin == nil {
			fmt.Fprintf(b, "  copied       %s, if it is absent on the destination\n", d)
			continue
		}
		fmt.Fprintf(b, "  twin         %s, if it is absent on the destination, for the cluster alone (ClusterIP)\n", d)
		for _, field := range d.Twin.LeftOut {
			fmt.Fprintf(b, "               without %s\n", field)
		}
	}
}

func renderBudget(b *strings.Builder, p *plans.Plan) {
	for _, side := range []plans.Side{plans.Source, plans.Destination} {
		name, existed := p.BudgetOn(side)
		what := "created for the duration of the move"
		if existed {
			what = "yours; changed step by step, restored field for field"
		} else if side == plans.Destination && p.Budget.SourceExisted {
			what = "created; becomes a copy of the source's"
		}
		fmt.Fprintf(b, "  budget       PodDisruptionBudget %s on the %s (%s)\n", name, side, what)
	}
}

// PodNames are the names of one pod.
type PodNames struct {
	Ordinal int32  `json:"ordinal"`
	Pod     string `json:"pod"`
	Old     string `json:"old"`
	New     string `json:"new"`
}

// Names are the names under which the pods of a plan are found, for programs. There are none if names are not changed.
type Names struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Plan       string         `json:"plan"`
	Mode       plans.NameMode `json:"mode"`
	Items      []PodNames     `json:"items"`
}

// NamesOf returns the names of every pod of a plan.
func NamesOf(p *plans.Plan) Names {
	out := Names{APIVersion: plans.APIVersion, Kind: "PlanNames", Plan: p.Name, Mode: p.Names.Mode, Items: []PodNames{}}
	if p.Names.Service == "" {
		return out
	}
	for o := p.Start; o < p.End(); o++ {
		out.Items = append(out.Items, PodNames{o, p.Pod(plans.Source, o), p.FindAs(o, plans.Source), p.FindAs(o, plans.Destination)})
	}
	return out
}

// RenderNames returns the table of the names under which each pod is found, on both sides, from the
// first step to the last.
func RenderNames(p *plans.Plan) string {
	if p.Names.Service == "" {
		return "Names are not changed: each side finds only its own pods.\n" + renderClients("", p)
	}
	var b strings.Builder
	width := len(p.FindAs(p.End()-1, plans.Source))
	fmt.Fprintf(&b, "%-*s  %s\n", width, "OLD NAME", "NEW NAME")
	for o := p.Start; o < p.End(); o++ {
		fmt.Fprintf(&b, "%-*s  %s\n", width, p.FindAs(o, plans.Source), p.FindAs(o, plans.Destination))
	}
	b.WriteString(renderClients("\n", p))
	return b.String()
}

// renderClients names the Services of clients, after a heading, or returns "".
func renderClients(heading string, p *plans.Plan) string {
	if len(p.Names.Clients) == 0 {
		return ""
	}
	return fmt.Sprintf("%sEach of these Services lists the pods of both sides in its namespace, until the end: %s\n", heading, strings.Join(p.Names.Clients, ", "))
}

func renderNames(b *strings.Builder, p *plans.Plan) {
	switch p.Names.Mode {
	case plans.MCS:
		b.WriteString("  names        mcs (the Service is exported on both sides; a pod's name has the cluster in which it runs)\n")
		return
	case plans.Bridge:
	case plans.NoNames:
		b.WriteString("  names        not changed: each side finds only its own pods\n")
		return
	}
	b.WriteString("  names        bridge (every pod is found under its old and its new name on both sides, until the end)\n")
	for _, d := range p.Directories() {
		if d.Lists == "" {
			fmt.Fprintf(b, "  names        Service %s/%s on the %s is created for the duration of the move\n", d.Namespace, p.Names.Service, d.On)
		}
	}
}

// placeholders says what is proven before an ordinal leaves, and why that was chosen.
func placeholders(of plans.Placeholder) string {
	out := string(of.Proof)
	if of.Why != "" {
		out += ", since " + of.Why
	}
	if !of.Used() {
		return out + ": nothing but the checks proves that an ordinal finds a node, its images and its volumes"
	}
	out += ": a pod that does nothing takes the place of each ordinal before it leaves"
	if of.Proof == plans.Warm {
		out += ", with its images pulled and its volumes mounted"
	}
	switch image := of.Program(); {
	case image != "":
		out += ", and runs the program of " + image
	case of.Image == "":
		out += ", and fails to start then, since this program is not of a release and has no image (--placeholder-image names one)"
	default:
		out += ", and fails to start then, since it gets no program"
	}
	if len(of.Reach) > 0 {
		out += "; must be reached from there: " + strings.Join(of.Reach, ", ")
	}
	if of.PriorityClass != "" {
		out += "; in PriorityClass " + of.PriorityClass
	}
	return out
}

func words(m plans.Mode) string {
	switch m {
	case plans.Rebind:
		return "rebind (the same PersistentVolume is given to the claim of the destination)"
	case plans.Empty:
		return "empty (the ordinal starts WITHOUT data, the application replicates it; the source's claims stay)"
	case plans.Reimport:
	}
	return "reimport (a PersistentVolume with the same handle is created in the destination cluster)"
}

// ordinals returns the ordinals of a wave, such as "4" or "2..4".
func ordinals(wave plans.Slice) string {
	if wave.Replicas == 1 {
		return strconv.Itoa(int(wave.Start))
	}
	return fmt.Sprintf("%d..%d", wave.Start, wave.End()-1)
}

// story describes the move of one wave in one line.
func story(p *plans.Plan, wave plans.Slice) string {
	hand := ""
	switch {
	case len(p.Claims) == 0:
	case wave.Replicas == 1:
		var claims []string
		for _, c := range p.Claims {
			claims = append(claims, p.ClaimName(plans.Source, c.Template, wave.Start))
		}
		hand = fmt.Sprintf(", hand over %s", strings.Join(claims, ", "))
	default:
		hand = fmt.Sprintf(", hand over their %d claims", len(p.Claims)*int(wave.Replicas))
	}
	return fmt.Sprintf("stop %s%s, start %[1]s", p.Pods(wave), hand)
}

// words describes a gate in one line.
func gate(g plans.Gate) string {
	in := "the pod of the ordinal"
	switch {
	case g.IsJob():
		in = "the namespace of the ordinal"
	case g.Pod != nil && g.Pod.Type == intstr.Int:
		in = fmt.Sprintf("the pod of ordinal %d", g.Pod.IntVal)
	case g.Pod != nil:
		in = "any other pod of the set"
	}
	often := ""
	if !g.IsJob() {
		often = fmt.Sprintf(" every %s", g.Interval.Duration)
	}
	until := ""
	if g.Expression != "" {
		until = ", until " + plans.Line(g.Expression)
	}
	return fmt.Sprintf("%s (%s): %s in %s, asked%s for up to %s per ordinal%s", g.Name, g.When, g.Kind(), in, often, g.Timeout.Duration, until)
}

// runs lists in full what the gate runs, one line each, for the user to approve.
func runs(g plans.Gate) []string {
	var out []string
	if g.Exec != nil {
		out = append(out, quoted(g.Exec.Command))
	}
	if !g.IsJob() {
		return out
	}
	spec := g.Job.Template.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		line := fmt.Sprintf("image %q", c.Image)
		if command := slices.Concat(c.Command, c.Args); len(command) > 0 {
			line += " with " + quoted(command)
		}
		if spec.ServiceAccountName != "" {
			line += fmt.Sprintf(" as ServiceAccount %q", spec.ServiceAccountName)
		}
		out = append(out, line)
	}
	return out
}

// quoted quotes words so that nothing of them is lost and nothing affects a terminal.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strconv.Quote(w)
	}
	return strings.Join(out, " ")
}

// Budgets returns how many evictions the budget of each side allows while a wave of a move is away. Its numbers depend on
// whether the wave before has just arrived.
func Budgets(p *plans.Plan, wave plans.Slice) map[plans.Side]string {
	out := map[plans.Side]string{}
	for side, n := range pdb.Allowed(p, wave) {
		out[side] = fmt.Sprintf("allows %d", n)
	}
	return out
}
