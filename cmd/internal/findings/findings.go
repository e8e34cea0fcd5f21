// Package findings formats what the checks of a plan found, for a terminal of any width.
package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// more is the command that explains a check, wherever the program was installed from.
const more = "to read more: stsmigrate explain "

// Text formats findings in groups, in the order of the catalogue. Each begins a line of its own, wrapped at the width;
// the commands of its remedy are not wrapped, because they are copied. The last finding of each check is followed
// by the command that explains the check, and by the address of the page that does.
func Text(found []check.Finding, width int) string {
	var b strings.Builder
	group, rest := "", slices.Clone(found)
	for _, d := range known(found) {
		var of []check.Finding
		of, rest = split(rest, d.Name)
		if len(of) == 0 {
			continue
		}
		if d.Group != group {
			group = d.Group
			fmt.Fprintf(&b, "%s:\n", group)
		}
		for _, f := range of {
			one(&b, f, width)
		}
		if d.Wants != "" {
			fmt.Fprintf(&b, "       %s%s\n       %s\n", more, d.Name, reasons.CheckPage(d.Name))
		}
	}
	return b.String()
}

// known returns the checks of the catalogue, and after them those that findings name and the catalogue does not have.
func known(found []check.Finding) []preflight.Description {
	all := preflight.Described()
	for _, f := range found {
		if !slices.ContainsFunc(all, func(d preflight.Description) bool { return d.Name == f.Check }) {
			all = append(all, preflight.Description{Name: f.Check, Group: "Other"})
		}
	}
	return all
}

// split returns the findings of a check, and the others.
func split(found []check.Finding, name string) (of, rest []check.Finding) {
	for _, f := range found {
		if f.Check == name {
			of = append(of, f)
		} else {
			rest = append(rest, f)
		}
	}
	return of, rest
}

func one(b *strings.Builder, f check.Finding, width int) {
	b.WriteString(program.Wrap(fmt.Sprintf("  %s %s", f.Level, plans.Line(f.String())), width, 7))
	if _, commands, ok := strings.Cut(f.Remedy, "\n"); ok {
		fmt.Fprintf(b, "         %s\n", strings.ReplaceAll(commands, "\n", "\n         "))
	}
}

// Warnings formats the findings that do not block, with a headline. It returns "" if there are none.
func Warnings(r *preflight.Report, width int) string {
	warned := r.Warned()
	if len(warned) == 0 {
		return ""
	}
	return fmt.Sprintf("\nWorth knowing before it begins (%d):\n%s", len(warned), Text(warned, width))
}

// Table formats a report: a line for each finding and for each check without one, in groups, the counts, and the
// remedies for the checks that do not pass.
func Table(r *preflight.Report, width int) string {
	var b strings.Builder
	group := ""
	for _, c := range r.Checks {
		if c.Group != group {
			if group != "" {
				b.WriteString("\n")
			}
			group = c.Group
			fmt.Fprintf(&b, "%s\n", group)
		}
		row := func(level check.Level, text string) {
			b.WriteString(program.Wrap(fmt.Sprintf("%s  %-22s  %s", level, c.Name, text), width, 30))
		}
		if len(c.Findings) == 0 {
			row(c.Level, c.About)
		}
		for _, f := range c.Findings {
			note := ""
			if f.Ignored {
				note = " (ignored)"
			}
			row(f.Level, fmt.Sprintf("%s: %s%s", f.Object, plans.Line(f.Saw), note))
		}
	}
	b.WriteString("\n" + program.Wrap(counts(r), width, 2))
	for _, f := range slices.Concat(r.Failed(), r.Warned()) {
		b.WriteString("\n" + program.Wrap(fmt.Sprintf("%s %s: %s", f.Level, f.Check, f.Object), width, 2))
		b.WriteString(program.Wrap("  expected "+plans.Line(f.Want), width, 4))
		remedy, commands, has := strings.Cut(f.Remedy, "\n")
		b.WriteString(program.Wrap("  "+remedy, width, 4))
		if has {
			fmt.Fprintf(&b, "      %s\n", strings.ReplaceAll(commands, "\n", "\n      "))
		}
		if f.Check != preflight.ByPlan {
			fmt.Fprintf(&b, "  %s%s\n  %s\n", more, f.Check, reasons.CheckPage(f.Check))
		}
	}
	return b.String()
}

// counts returns the line that says how many checks there are, and how they ended.
func counts(r *preflight.Report) string {
	count, ignored := map[check.Level]int{}, 0
	for _, c := range r.Checks {
		if c.Level == check.Warn && c.Findings[0].Ignored {
			ignored++
		} else {
			count[c.Level]++
		}
	}
	out := fmt.Sprintf("%d checks: %d passed, %d to know about, %d ignored, %d failed", len(r.Checks)+r.NotRun, count[check.Pass], count[check.Warn], ignored, count[check.Fail])
	if r.NotRun > 0 {
		out += fmt.Sprintf("; %d not run: %s", r.NotRun, r.Stumble())
	}
	return out
}
