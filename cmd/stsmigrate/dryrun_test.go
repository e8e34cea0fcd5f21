package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// dryRuns is the table of docs/commands.md of the commands that have --dry-run.
var dryRuns = regexp.MustCompile("(?m)^\\| command \\| `none` \\|.*\n\\|[- |]*\n(?:\\| `.*\n)*")

// dryRunsOf returns the values of --dry-run that a command completes.
func dryRunsOf(t *testing.T, c *cobra.Command) []string {
	t.Helper()
	words, known := c.GetFlagCompletionFunc("dry-run")
	if !known {
		t.Fatalf("%s completes no value of --dry-run", c.CommandPath())
	}
	values, _ := words(c, nil, "")
	return values
}

// dryRunTable returns that table, as the commands have the flag.
func dryRunTable(t *testing.T) string {
	t.Helper()
	values := []string{"none", "client", "server"}
	table := "| command | `none` | `client` | `server` | `--dry-run` alone |\n| --- | --- | --- | --- | --- |\n"
	every(t, func(c *cobra.Command) {
		f := c.LocalNonPersistentFlags().Lookup("dry-run")
		if f == nil {
			return
		}
		_, name, _ := strings.Cut(c.CommandPath(), " ")
		known := dryRunsOf(t, c)
		if len(known) < 2 || !slices.Contains(known, f.NoOptDefVal) || !slices.Contains(known, f.DefValue) {
			t.Errorf("%s --dry-run: the values %v, alone %s, and %s by default", name, known, f.NoOptDefVal, f.DefValue)
		}
		table += fmt.Sprintf("| `%s` |", name)
		for _, v := range values {
			has := "no"
			if slices.Contains(known, v) {
				has = "yes"
			}
			table += " " + has + " |"
		}
		table += fmt.Sprintf(" `%s` |\n", f.NoOptDefVal)
	})
	return table
}

// A user who tries a command without its writes has to know which form the command takes.
func TestThePageHasTheDryRuns(t *testing.T) {
	const file = "../../docs/commands.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := dryRunTable(t)
	if *update {
		if err := os.WriteFile(file, dryRuns.ReplaceAll(page, []byte(want)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have := dryRuns.Find(page); string(have) != want {
		t.Errorf("%s has\n%s\nexpected\n%s: go test ./cmd/stsmigrate -run ThePageHasTheDryRuns -update", file, have, want)
	}
}

// Each value of the table is accepted, and every other one is refused before any cluster is asked.
func TestACommandTakesTheDryRunsOfItsTable(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	every(t, func(c *cobra.Command) {
		if c.LocalNonPersistentFlags().Lookup("dry-run") == nil {
			return
		}
		values := dryRunsOf(t, c)
		for _, v := range []string{"none", "client", "server", "all"} {
			args := append(strings.Fields(c.CommandPath())[1:], "web", "--dry-run="+v)
			refused := strings.Contains(command(t, args...).errOut, "error: --dry-run="+v+": expected one of "+strings.Join(values, ", "))
			if known := slices.Contains(values, v); known == refused {
				t.Errorf("%v: refused %v, expected %v", args, refused, !known)
			}
		}
	})
}

// The page lists the commands that have -o.
func TestThePageHasTheCommandsWithOutputs(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile("(?m)^(`[^.|]*?)\\s+print\\s+with\\s+`-o`").FindSubmatch(page)
	if sentence == nil {
		t.Fatal("docs/commands.md has no sentence about -o")
	}
	var have, want []string
	for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllSubmatch(sentence[1], -1) {
		have = append(have, string(name[1]))
	}
	for _, c := range new(app).command("stsmigrate").Commands() {
		if c.Flags().Lookup("output") != nil {
			want = append(want, c.Name())
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the commands with -o are %v, and docs/commands.md has %v", want, have)
	}
}
