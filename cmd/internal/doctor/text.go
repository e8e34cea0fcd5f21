package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/cmd/internal/findings"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// document returns the diagnosis in every form. One set that was named is shown in full.
func (d *Diagnosis) document(p patient, named []string, width int) output.Document {
	var names []string
	for _, s := range d.Items {
		names = append(names, strings.ToLower(s.Kind)+"/"+s.Name)
	}
	one := len(named) == 1 && len(d.Items) == 1
	text := func(wide bool) func() string {
		return func() string {
			switch {
			case one:
				return d.Items[0].full(p, width) + d.unseen(width)
			case d.Total == 0:
				return d.unseen(width)
			}
			return d.summary(p, width) + d.grouped(width) + "\n" + output.Table(d.rows(wide)) + d.unseen(width) + d.next(p, width)
		}
	}
	return output.Document{Value: d, Names: slices.Concat([]string{}, names), Text: text(false), Wide: text(true)}
}

// summary says how many sets could move.
func (d *Diagnosis) summary(p patient, width int) string {
	line := fmt.Sprintf("%d of %s could move as %s to %s", d.Movable, counted(d.Total, "set"), are(d.Total), p.whither())
	if d.Here > 0 {
		line += fmt.Sprintf(", %d of them within this cluster only", d.Here)
	}
	line += "."
	if no := d.Total - d.Movable - d.Unknown; no > 0 {
		line += fmt.Sprintf(" %d could not.", no)
	}
	if d.Unknown > 0 {
		line += fmt.Sprintf(" Of %d it cannot be told with your rights.", d.Unknown)
	}
	return program.Wrap(line, width, 0)
}

// whither says where the sets would move.
func (p patient) whither() string {
	switch {
	case p.to == nil:
		return "another namespace"
	case p.toNamespace != "":
		return "namespace " + p.toNamespace + " of " + p.to.Name()
	}
	return p.to.Name()
}

func are(n int) string {
	if n == 1 {
		return "it is"
	}
	return "they are"
}

func counted(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// grouped says why sets could not move, and what is worth knowing, once for each check.
func (d *Diagnosis) grouped(width int) string {
	var b strings.Builder
	known := checks()
	causes := d.causes()
	at := slices.IndexFunc(causes, func(c cause) bool { return c.level == check.Warn })
	if at < 0 {
		at = len(causes)
	}
	for n, c := range causes {
		if n == at {
			b.WriteString(d.local(width))
		}
		fmt.Fprintf(&b, "\n%s  %s (%s)\n", c.level, c.check, counted(len(c.sets), "set"))
		if c.check == preflight.ByPlan {
			for _, s := range c.sets {
				b.WriteString(program.Wrap(fmt.Sprintf("      %s: %s", s.ref.Namespace+"/"+s.ref.Typed(), first(s, c).Saw), width, 8))
			}
			continue
		}
		b.WriteString(program.Wrap("      "+few(c.sets), width, 6))
		b.WriteString(program.Wrap("      expected: "+known[c.check].Wants, width, 8))
		f := first(c.sets[0], c)
		b.WriteString(program.Wrap(fmt.Sprintf("      seen: %s: %s", f.Object, plans.Line(f.Saw)), width, 8))
		if c.level == check.Fail {
			remedy, _, more := strings.Cut(f.Remedy, "\n")
			if more {
				remedy += " ... (shown with the set)"
			}
			b.WriteString(program.Wrap("      to do: "+remedy, width, 8))
		}
	}
	if at == len(causes) {
		b.WriteString(d.local(width))
	}
	return b.String()
}

// local says which sets can move within their cluster only.
func (d *Diagnosis) local(width int) string {
	var sets []Set
	for _, s := range d.Items {
		if s.Moves == Here {
			sets = append(sets, s)
		}
	}
	if len(sets) == 0 {
		return ""
	}
	return fmt.Sprintf("\nHERE  within this cluster only (%s)\n", counted(len(sets), "set")) +
		program.Wrap("      "+few(sets), width, 6) + program.Wrap("      seen: "+sets[0].Within, width, 8)
}

// first returns the finding by which a set belongs to a cause.
func first(s Set, c cause) check.Finding {
	return s.Findings[slices.IndexFunc(s.Findings, func(f check.Finding) bool { return f.Check == c.check && f.Level == c.level })]
}

func few(sets []Set) string {
	var names []string
	for _, s := range sets {
		names = append(names, s.Namespace+"/"+s.ref.Typed())
	}
	return check.Few(names)
}

// rows returns the table of the sets.
func (d *Diagnosis) rows(wide bool) [][]string {
	out := [][]string{{"NAMESPACE", "NAME", "PODS", "SIZE", "MOVES", "WHY", "ABOUT"}}
	for _, s := range d.Items {
		why := s.why(check.Fail)
		if !wide {
			why = brief(why)
		}
		if why == "" {
			why = s.mild(wide)
		}
		out = append(out, []string{s.Namespace, s.ref.Typed(), fmt.Sprint(s.Pods), cmp.Or(s.Size, "-"), string(s.Moves), cmp.Or(why, "-"), cmp.Or(s.About, "-")})
	}
	return out
}

// why returns the checks that have findings of a level, in the order of the report.
func (s *Set) why(level check.Level) string {
	var out []string
	for _, f := range s.Findings {
		if f.Level == level && !slices.Contains(out, f.Check) {
			out = append(out, f.Check)
		}
	}
	return strings.Join(out, ", ")
}

// mild says what is to know of a set of which no check fails.
func (s *Set) mild(wide bool) string {
	switch warned := s.why(check.Warn); {
	case s.Moves == Unknown:
		return fmt.Sprintf("%d not asked", len(s.Unasked))
	case wide:
		return warned
	case warned == "":
		return ""
	default:
		return fmt.Sprintf("%d WARN", strings.Count(warned, ",")+1)
	}
}

// brief returns the first of a list, and how many more there are.
func brief(list string) string {
	one, rest, more := strings.Cut(list, ", ")
	if !more {
		return one
	}
	return fmt.Sprintf("%s +%d", one, strings.Count(rest, ",")+1)
}

// unseen says what was not looked at and what that means, once for each right.
func (d *Diagnosis) unseen(width int) string {
	if len(d.Unseen) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + program.Wrap("You may not list the following. With a Role of get and list for it, the rest is seen:", width, 0))
	for _, u := range d.Unseen {
		where := "in the cluster"
		if len(u.Namespaces) > 0 {
			where = fmt.Sprintf("in %d namespaces (%s)", len(u.Namespaces), check.Few(u.Namespaces))
			if len(u.Namespaces) == 1 {
				where = "in namespace " + u.Namespaces[0]
			}
		}
		means := "the sets there are not among these"
		if len(u.Checks) > 0 {
			means = fmt.Sprintf("of %s not asked: %s", counted(u.Sets, "set"), strings.Join(u.Checks, ", "))
		}
		b.WriteString(program.Wrap(fmt.Sprintf("  %s %s: %s", clusters.Right{Resource: u.Resource, Group: u.Group}, where, means), width, 6))
	}
	return b.String()
}

// next says how to read more.
func (d *Diagnosis) next(p patient, width int) string {
	s := d.Items[0]
	more := ""
	if p.to == nil {
		more = fmt.Sprintf("%d more checks need a destination: --to-namespace or --to-context. ", preflight.NeedDestination())
	}
	return "\n" + program.Wrap(more+"Nothing has been written. Every finding of one set, with what to do:", width, 0) +
		fmt.Sprintf("  stsmigrate doctor %s%s%s\n", s.Namespace+"/"+s.ref.Typed(), p.Flags, p.destination())
}

// destination returns the flags of the destination.
func (p patient) destination() string {
	if p.to == nil {
		return ""
	}
	out := strings.ReplaceAll(p.to.Flags, " --", " --to-")
	return out + program.Given("--to-namespace", p.toNamespace)
}

// full shows every finding of one set.
func (s *Set) full(p patient, width int) string {
	about := []string{counted(int(s.Pods), "pod")}
	if s.Size != "" {
		about = append(about, s.Size)
	}
	if s.About != "" {
		about = append(about, "about "+s.About)
	}
	could := map[Verdict]string{
		Yes: "could move as it is to " + p.whither(), Here: "could move as it is to another namespace, within this cluster only (" + s.Within + ")",
		No: "could not move as it is", Unknown: fmt.Sprintf("could move as far as you may look: no check fails, and %d were not asked for want of rights", len(s.Unasked)),
	}[s.Moves]
	out := program.Wrap(fmt.Sprintf("%s %s: %s.", s.ref.Set(), could, strings.Join(about, ", ")), width, 2) + "\n" + findings.Table(s.report, width)
	if p.to != nil {
		return out
	}
	return out + "\n" + program.Wrap(fmt.Sprintf("%d more checks need a destination. All of them, once you know where it shall move:", preflight.NeedDestination()), width, 0) +
		fmt.Sprintf("  stsmigrate check %s -n %s%s --to-namespace NAMESPACE\n", s.ref.Typed(), s.Namespace, p.Flags)
}
