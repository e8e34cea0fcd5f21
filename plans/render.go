package plans

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Render describes what a plan will do: first what holds for all ordinals, then one line for each
// wave of the leg, in the order in which they move.
func Render(p *Plan, l Leg) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan %s (%s)\n", p.Name, p.ID)
	fmt.Fprintf(&b, "  source       StatefulSet %s %s\n", p.Source, Slice{p.Start, p.Count})
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
		fmt.Fprintf(&b, "  volumes      claim template %s: %s\n", c.Template, c.Mode.words())
	}
	if len(p.Claims) == 0 {
		b.WriteString("  volumes      none\n")
	}
	renderStorage(&b, p)
	renderChanges(&b, p)
	renderDependencies(&b, p)
	renderNames(&b, p)
	for _, g := range p.Gates {
		fmt.Fprintf(&b, "  gate         %s\n", g.words())
		for _, runs := range g.runs() {
			fmt.Fprintf(&b, "  gate         %s runs %s\n", g.Name, runs)
		}
	}
	if len(p.Ignored) > 0 {
		fmt.Fprintf(&b, "  ignored      the findings of these checks: %s\n", strings.Join(p.Ignored, ", "))
	}
	b.WriteString("\nBefore the first ordinal: volumes and claims are protected (reclaim and retention policies to Retain, old values saved).\n\n")
	b.WriteString("ORDINAL  SOURCE     DESTINATION  WHAT HAPPENS\n")
	for i := range p.waves(l) {
		wave := p.wave(l, i)
		fmt.Fprintf(&b, "%-8s %-10s %-12s %s\n", ordinals(wave), p.Slice(Source, wave, false), p.Slice(Destination, wave, true), p.story(wave))
	}
	if l.Lowest > p.Start {
		wave := Slice{Start: l.Lowest}
		fmt.Fprintf(&b, "\nThe move stops there in a split: the source keeps %s, the destination has %s. `resume` continues it.\n", p.Slice(Source, wave, true), p.Slice(Destination, wave, true))
	}
	if p.Names.Service != "" {
		b.WriteString("\n" + RenderNames(p))
	}
	b.WriteString("\nAfter the last ordinal: both sides stay unchanged until `finalize` (cleans the source up) or `abort` (moves everything back).\n")
	return b.String()
}

func renderStorage(b *strings.Builder, p *Plan) {
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

func renderChanges(b *strings.Builder, p *Plan) {
	for _, c := range p.Changes {
		fmt.Fprintf(b, "  patched      %s\n", c)
	}
	if len(p.Patches) > 0 && len(p.Changes) == 0 {
		b.WriteString("  patched      nothing: the set already has the values of the patches\n")
	}
}

func renderDependencies(b *strings.Builder, p *Plan) {
	for _, d := range p.Dependencies {
		if d.Required != "" {
			fmt.Fprintf(b, "  required     %s, which must already exist on the destination (%s)\n", d, d.Required)
			continue
		}
		fmt.Fprintf(b, "  copied       %s, if it is absent on the destination\n", d)
	}
}

func renderBudget(b *strings.Builder, p *Plan) {
	for _, side := range []Side{Source, Destination} {
		name, existed := p.BudgetOn(side)
		what := "created for the duration of the move"
		if existed {
			what = "yours; changed step by step, restored field for field"
		} else if side == Destination && p.Budget.SourceExisted {
			what = "created; becomes a copy of the source's"
		}
		fmt.Fprintf(b, "  budget       PodDisruptionBudget %s on the %s (%s)\n", name, side, what)
	}
}

// RenderNames returns the table of the names under which each pod is found, on both sides, from the
// first step to the last.
func RenderNames(p *Plan) string {
	if p.Names.Service == "" {
		return "Names are not changed: each side finds only its own pods.\n"
	}
	var b strings.Builder
	width := len(p.FindAs(p.End()-1, Source))
	fmt.Fprintf(&b, "%-*s  %s\n", width, "OLD NAME", "NEW NAME")
	for o := p.Start; o < p.End(); o++ {
		fmt.Fprintf(&b, "%-*s  %s\n", width, p.FindAs(o, Source), p.FindAs(o, Destination))
	}
	return b.String()
}

func renderNames(b *strings.Builder, p *Plan) {
	switch p.Names.Mode {
	case MCS:
		b.WriteString("  names        mcs (the Service is exported on both sides; a pod's name has the cluster in which it runs)\n")
		return
	case Bridge:
	case NoNames:
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

func (m Mode) words() string {
	switch m {
	case Rebind:
		return "rebind (the same PersistentVolume is given to the claim of the destination)"
	case Empty:
		return "empty (the ordinal starts WITHOUT data, the application replicates it; the source's claims stay)"
	case Reimport:
	}
	return "reimport (a PersistentVolume with the same handle is created in the destination cluster)"
}

// ordinals returns the ordinals of a wave, such as "4" or "2..4".
func ordinals(wave Slice) string {
	if wave.Replicas == 1 {
		return strconv.Itoa(int(wave.Start))
	}
	return fmt.Sprintf("%d..%d", wave.Start, wave.End()-1)
}

// story describes the move of one wave in one line.
func (p *Plan) story(wave Slice) string {
	hand := ""
	switch {
	case len(p.Claims) == 0:
	case wave.Replicas == 1:
		var claims []string
		for _, c := range p.Claims {
			claims = append(claims, p.ClaimName(c.Template, wave.Start))
		}
		hand = fmt.Sprintf(", hand over %s", strings.Join(claims, ", "))
	default:
		hand = fmt.Sprintf(", hand over their %d claims", len(p.Claims)*int(wave.Replicas))
	}
	return fmt.Sprintf("stop %s%s, start %[1]s", p.Pods(wave), hand)
}
