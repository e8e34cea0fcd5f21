// Package flagtest writes the settings of a program into docs/settings.md, for the test of the program: its flags as the
// program defines them, and its environment variables.
package flagtest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// page is docs/settings.md, from the folder of a program.
const page = "../../docs/settings.md"

// Variable is an environment variable that a program reads, or several that belong together.
type Variable struct {
	// Names are its names.
	Names []string
	// Default says what applies without it.
	Default string
	// Meaning is what it is for.
	Meaning string
}

// Program is a program with a section of its own in the page.
type Program struct {
	Name  string
	Flags *pflag.FlagSet
	Env   []Variable
}

// Compare compares the section of a program with the program. With update it writes the section first. Two programs
// must not do that at the same time.
func Compare(t *testing.T, p Program, update bool) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, have, after, found := section(string(raw), p.Name)
	if !found {
		t.Fatalf("%s has no heading ## %s", page, p.Name)
	}
	want := p.section()
	if update && have != want {
		if err := os.WriteFile(page, []byte(before+want+after), 0o600); err != nil { //nolint:gosec // the test names the page
			t.Fatal(err)
		}
		have = want
	}
	if have != want {
		t.Errorf("the section %s of docs/settings.md is not as generated: go test ./cmd/%[1]s -update", p.Name)
	}
	p.Flags.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no meaning", f.Name)
		}
	})
}

// section returns the text of a page before the section of a program, the section, and the text after it.
func section(text, name string) (before, within, after string, found bool) {
	heading := "\n## " + name + "\n"
	at := strings.Index(text, heading)
	if at < 0 {
		return text, "", "", false
	}
	end := len(text)
	if next := strings.Index(text[at+len(heading):], "\n## "); next >= 0 {
		end = at + len(heading) + next
	}
	return text[:at], text[at:end], text[end:], true
}

// section returns the section of the page about a program.
func (p Program) section() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n| flag | default | meaning |\n| --- | --- | --- |\n", p.Name)
	p.Flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		names := "`--" + strings.TrimSpace(f.Name+" "+value) + "`"
		if f.Shorthand != "" && f.Shorthand != f.Name {
			names = "`-" + f.Shorthand + "`, " + names
		}
		usage, byDefault := defaultOf(f.DefValue, usage)
		fmt.Fprintf(&out, "| %s | %s | %s |\n", names, byDefault, cell(usage))
	})
	out.WriteString("\n| variable | default | meaning |\n| --- | --- | --- |\n")
	for _, v := range p.Env {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", strings.Join(v.Names, "`, `"), cell(v.Default), cell(v.Meaning))
	}
	return out.String()
}

// said is a default in the meaning of a flag.
var said = regexp.MustCompile(` \(default:? ([^()]*(?:\([^()]*\))?[^()]*)\)`)

// defaultOf returns the meaning of a flag without its default, and the default.
func defaultOf(value, usage string) (without, byDefault string) {
	if m := said.FindStringSubmatch(usage); m != nil {
		return strings.Replace(usage, m[0], "", 1), cell(m[1])
	}
	switch value {
	case "", "[]":
		return usage, "none"
	}
	return usage, "`" + value + "`"
}

// cell returns a text as the cell of a table shows it.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}

// Common returns the variables that every program reads which runs in a cluster.
func Common() []Variable {
	return []Variable{
		{Names: []string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}, Default: "set by Kubernetes in each pod", Meaning: "the address of the API server, without --kubeconfig"},
		{Names: []string{"GOMEMLIMIT"}, Default: "a part of the container's memory limit", Meaning: "how much memory the Go runtime tries to stay within, such as 400MiB"},
		{Names: []string{"AUTOMEMLIMIT"}, Default: "0.8", Meaning: "which part of the container's memory limit that is, without GOMEMLIMIT, or off"},
	}
}
