package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md anew") //nolint:gochecknoglobals // a flag of the test

// The reference of the commands is what --help prints, for those who search a page.
const aboutReference = `# Command line

Every command with its flags, generated from what ` + "`--help`" + ` prints. [Commands](commands.md) says in one row each
what they are for, and [exit codes](troubleshooting.md#exit-codes) what they end with. Everything works as
` + "`kubectl stsmigrate`" + ` too.
`

// reference returns the page of every command of the program.
func reference(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString(aboutReference)
	for _, g := range root.Groups() {
		var names []string
		for _, c := range shownBy(root) {
			if c.GroupID == g.ID {
				names = append(names, fmt.Sprintf("[%s](#%s)", c.Name(), c.Name()))
			}
		}
		fmt.Fprintf(&page, "\n%s %s\n", g.Title, strings.Join(names, ", "))
	}
	for _, c := range shownBy(root) {
		describe(&page, "## ", c)
		if c.Name() == "completion" {
			continue // its texts for each shell are cobra's
		}
		for _, below := range shownBy(c) {
			describe(&page, "### ", below)
		}
	}
	page.WriteString("\n## Flags of every command\n\nPlain flags mean the source, `--to-*` flags the destination, and `--home-*` flags the place that keeps plans.\n")
	page.WriteString(flagTable(root.PersistentFlags()))
	return page.String()
}

// shownBy returns the commands directly below another that its help shows.
func shownBy(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(below *cobra.Command) bool { return !below.IsAvailableCommand() })
}

// describe writes the section of one command.
func describe(page *strings.Builder, heading string, c *cobra.Command) {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(page, "\n%s%s\n\n%s\n\n```text\n%s\n```\n", heading, name, plain(about), c.UseLine())
	if c.Example != "" {
		note := "<!-- not run: an example of the help -->\n"
		if slices.Contains(offline(), c.Name()) {
			note = ""
		}
		fmt.Fprintf(page, "\n%s```sh\n%s\n```\n", note, regexp.MustCompile(`(?m)^  `).ReplaceAllString(c.Example, ""))
	}
	page.WriteString(flagTable(c.LocalNonPersistentFlags()))
}

// flagTable returns the flags of a set as a table, or "" without any.
func flagTable(flags *pflag.FlagSet) string {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		names := "`--" + strings.TrimSpace(f.Name+" "+value) + "`"
		if f.Shorthand != "" {
			names = "`-" + f.Shorthand + "`, " + names
		}
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) && !strings.Contains(usage, "(default") {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", names, plain(strings.ReplaceAll(usage, "\n", " ")))
	})
	if rows.Len() == 0 {
		return ""
	}
	return "\n| flag | meaning |\n| --- | --- |\n" + rows.String()
}

// plain returns a text of the terminal as Markdown that shows the same. What is indented there is code here.
func plain(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for k, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[k] = "  " + line
			continue
		}
		lines[k] = strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`).Replace(line)
	}
	return strings.Join(lines, "\n")
}

func TestThePageOfCommandsIsMadeOfTheirHelp(t *testing.T) {
	const file = "../../docs/cli.md"
	t.Setenv("HOME", "/does/not/exist") // no default may be this machine's
	root := new(app).command("stsmigrate")
	root.InitDefaultCompletionCmd("completion")
	want := reference(root)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != want {
		t.Errorf("%s is not as generated (%v): go test ./cmd/stsmigrate -run ThePageOfCommands -update", file, err)
	}
	if strings.Contains(want, "/does/not/exist") {
		t.Error("a default comes from the environment")
	}
	every(t, func(c *cobra.Command) {
		_, name, below := strings.Cut(c.CommandPath(), " ")
		if below && c.IsAvailableCommand() && !strings.HasPrefix(name, "completion ") && !strings.Contains(want, "# "+name+"\n") {
			t.Errorf("%s has no section for %s", file, name)
		}
	})
}

// The exit codes are part of the interface: the table of them has each code of main.go, and no other.
func TestThePageHasTheExitCodes(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(pattern string, text []byte) (out []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			out = append(out, string(m[1]))
		}
		return out
	}
	_, table, _ := strings.Cut(string(page), "## Exit codes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	want, have := numbers(`(?m)^\texit[A-Z]\w+ += (\d+)`, source), numbers(`(?m)^\| (\d+) \|`, []byte(table))
	if len(want) < 5 || !slices.Equal(want, have) {
		t.Errorf("the exit codes are %v, and docs/troubleshooting.md has %v", want, have)
	}
	for _, code := range want {
		if !slices.Contains(strings.Fields(new(app).command("stsmigrate").Long), code) {
			t.Errorf("stsmigrate --help does not name the exit code %s", code)
		}
	}
}
