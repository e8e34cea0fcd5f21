package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// pages calls do with every page of the repository.
func pages(t *testing.T, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		raw, err := os.ReadFile(path)
		do(path, string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// commandLines returns the command lines of the program in a page: those of blocks, and those between backquotes.
func commandLines(text string) (out [][]string) {
	for _, code := range regexp.MustCompile("(?s)```.*?```|`[^`]+`|(?m)^    [^\n]*$").FindAllString(text, -1) {
		code = strings.ReplaceAll(code, "\\\n", " ")
		for _, line := range regexp.MustCompile(`(?m)(?:^ *|[(`+"`"+`|&;] *)(?:timeout [^\n]*? )?(?:kubectl )?stsmigrate +([^|&;#>)`+"`"+`\n]*)`).FindAllStringSubmatch(code, -1) {
			if words := strings.Fields(line[1]); len(words) > 0 {
				out = append(out, words)
			}
		}
	}
	return out
}

// shortened returns what a page has between backquotes without the name of the program: a command with its flags.
func shortened(root *cobra.Command, text string) (out [][]string) {
	for _, code := range regexp.MustCompile("`([a-z]+ [^`\n]*)`").FindAllStringSubmatch(text, -1) {
		words := strings.Fields(code[1])
		for _, c := range root.Commands() {
			if c.Name() == words[0] && strings.Contains(code[1], " -") {
				out = append(out, words)
			}
		}
	}
	return out
}

// flagOf returns the flag that a word names, and whether it names one.
func flagOf(c *cobra.Command, word string) (f *pflag.Flag, names bool) {
	name, _, _ := strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(name, "--") && len(name) > 2:
		name = strings.TrimPrefix(name, "--")
		if f = c.Flags().Lookup(name); f == nil {
			f = c.InheritedFlags().Lookup(name)
		}
		return f, true
	case regexp.MustCompile(`^-[a-zA-Z]$`).MatchString(name):
		if f = c.Flags().ShorthandLookup(name[1:]); f == nil {
			f = c.InheritedFlags().ShorthandLookup(name[1:])
		}
		return f, true
	}
	return nil, false
}

// wrongIn returns what is wrong with a command line, or "".
func wrongIn(root *cobra.Command, words []string) string {
	c, _, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if c == root && !strings.HasPrefix(words[0], "-") {
		return "there is no command " + words[0]
	}
	c.InitDefaultHelpFlag()
	for _, word := range words {
		if f, names := flagOf(c, strings.Trim(word, "[],'\".:")); names && f == nil {
			return c.CommandPath() + " has no flag " + word
		}
	}
	return ""
}

// A page whose commands do not exist is worse than none: every command and every flag that a page names must be
// there.
func TestPagesNameCommandsAndFlagsThatExist(t *testing.T) {
	root, seen := new(app).command("stsmigrate"), 0
	root.InitDefaultCompletionCmd("completion")
	root.InitDefaultHelpCmd()
	pages(t, func(path, text string) {
		for _, words := range append(commandLines(text), shortened(root, text)...) {
			seen++
			if wrong := wrongIn(root, words); wrong != "" {
				t.Errorf("%s: stsmigrate %s: %s", path, strings.Join(words, " "), wrong)
			}
		}
	})
	if seen < 100 {
		t.Errorf("only %d command lines were found", seen)
	}
	t.Logf("%d command lines", seen)
}

// offline are commands that need no cluster.
func offline() []string { return []string{"completion", "explain", "schema", "version"} }

// placeholder is a word for which a user has to put another one.
var placeholder = regexp.MustCompile(`^(?:[A-Z][A-Z-]+|.*(?:\.\.\.|[[\]]).*)$`)

// What a page says about commands that need no cluster is tried, in blocks and in sentences.
func TestCommandsWithoutAClusterWork(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	ran := map[string]bool{}
	pages(t, func(path, text string) {
		for _, words := range commandLines(text) {
			line := strings.Join(words, " ")
			if !slices.Contains(offline(), words[0]) || slices.ContainsFunc(words, placeholder.MatchString) || ran[line] {
				continue
			}
			ran[line] = true
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			if code := run(append([]string{"stsmigrate"}, words...), streams); code != 0 || out.Len() == 0 {
				t.Errorf("%s: stsmigrate %s: exit code %d, and it printed %d bytes: %s", path, line, code, out.Len(), errOut)
			}
		}
	})
	if len(ran) < 8 {
		t.Errorf("only %d commands were run", len(ran))
	}
	t.Logf("%d commands were run", len(ran))
}

func TestWrongCommandLinesAreFound(t *testing.T) {
	root := new(app).command("stsmigrate")
	for line, want := range map[string]string{
		"`stsmigrate plan web -n shop --out web.yaml`":                 "",
		"`stsmigrate fly web`":                                         `unknown command "fly" for "stsmigrate"`,
		"`stsmigrate plan web --max-frobnicate 1`":                     "stsmigrate plan has no flag --max-frobnicate",
		"```sh\nx | kubectl stsmigrate get -A -Z | less\n```":          "stsmigrate get has no flag -Z",
		"```\nstsmigrate apply web.yaml \\\n  --yess # --nothing\n```": "stsmigrate apply has no flag --yess",
	} {
		lines := commandLines(line)
		if len(lines) != 1 {
			t.Fatalf("%s: %d command lines", line, len(lines))
		}
		if got := wrongIn(root, lines[0]); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestEveryCommandIsOnItsPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range new(app).command("stsmigrate").Commands() {
		if !regexp.MustCompile("(?m)^\\|[^|]*`("+c.Name()+"\\b|[^`|]* "+c.Name()+"\\b)").Match(raw) && !c.Hidden {
			t.Errorf("docs/commands.md has no row for %s", c.Name())
		}
	}
}
