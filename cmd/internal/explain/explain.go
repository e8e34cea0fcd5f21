// Package explain finds the explanation of a reason or of a check, without a network.
package explain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// Everything is all that can be explained.
type Everything struct {
	Reasons []reasons.Explanation `json:"reasons"`
	Checks  []Check               `json:"checks"`
}

// Explanation is the explanation of a reason or of a check.
type Explanation interface{ Text() string }

// Check is a check as it is explained.
type Check struct {
	preflight.Description
	preflight.Why
}

// All returns everything that can be explained.
func All() (Everything, error) {
	var out Everything
	whys, err := preflight.Whys()
	if err != nil {
		return out, err
	}
	for _, d := range preflight.Described() {
		out.Checks = append(out.Checks, Check{d, whys[d.Name]})
	}
	out.Reasons, err = reasons.Table()
	return out, err
}

// Find returns the explanation of a reason or check, in whatever case its name is written.
func (e Everything) Find(name string) (Explanation, error) {
	if r, ok := reasons.Find(e.Reasons, name); ok {
		return r, nil
	}
	for _, c := range e.Checks {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no reason and no check %q%s: `stsmigrate explain` lists them", name, e.alike(name))
}

// Names returns the names of all reasons and checks.
func (e Everything) Names() []string {
	var out []string
	for _, r := range e.Reasons {
		out = append(out, string(r.ID))
	}
	for _, c := range e.Checks {
		out = append(out, c.Name)
	}
	return out
}

// alike returns the names that contain the word, or else the one that is spelled most like it, as a question, or "".
func (e Everything) alike(word string) string {
	word = strings.ToLower(word)
	out := slices.DeleteFunc(e.Names(), func(name string) bool { return !strings.Contains(strings.ToLower(name), word) })
	if near := program.Closest(word, e.Names()); len(out) == 0 && near != "" {
		out = []string{near}
	}
	if len(out) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(out, ", ") + "?)"
}

// Text returns the explanation of a check for a terminal.
func (d Check) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (check, %s)\n\nIt wants:\n  %s\n\nWhy:\n  %s\n\nWhat to do:\n  %s\n\n", d.Name, d.Group, d.Wants, d.Why.Why, d.Remedy)
	switch {
	case d.Worst == check.Warn:
		b.WriteString("It only warns.\n")
	case d.Ignorable:
		fmt.Fprintf(&b, "It blocks the plan, unless --ignore %s is given.\n", d.Name)
	default:
		b.WriteString("It blocks the plan, and cannot be ignored.\n")
	}
	if d.Repeated {
		b.WriteString("It runs again between waves.\n")
	}
	if slices.Contains(preflight.Acceptable(), d.Name) {
		fmt.Fprintf(&b, "Before a wave of an abort it bars ordinals that serve, unless resume or abort has --ignore %s.\n", d.Name)
	}
	if d.More != "" {
		b.WriteString("More: " + d.More + "\n")
	}
	b.WriteString("On the web: " + reasons.CheckPage(d.Name) + "\n")
	return b.String()
}

// Text returns one line per reason and check.
func (e Everything) Text() string {
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "REASON\tTOPIC\tWHAT HAPPENED")
	for _, r := range e.Reasons {
		first, _, _ := strings.Cut(r.What, ". ")
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.ID, r.Topic, strings.TrimSuffix(first, "."))
	}
	_ = w.Flush() // into memory
	b.WriteString("\n")
	fmt.Fprintln(w, "CHECK\tGROUP\tWANTS")
	for _, d := range e.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, d.Group, d.Wants)
	}
	_ = w.Flush() // into memory
	return b.String()
}
