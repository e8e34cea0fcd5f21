package repo

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// generated are the pages that a program writes.
var generated = regexp.MustCompile(`^docs/(?:cli|drivers|fields|reasons|reliability|development/reliability-tables)\.md$|^docs/results/`)

// longLines returns the lines of prose of a page that are longer than 110 columns and could be wrapped: outside of
// blocks, tables, headings and comments.
func longLines(text string) (out []string) {
	text = regexp.MustCompile("(?ms)^ *```.*?^ *```$|^<!-- The catalogue follows.*<!-- The catalogue ends here").ReplaceAllString(text, "")
	other := regexp.MustCompile(`^\s*(?:\||#|<!--)`)
	for _, line := range strings.Split(text, "\n") {
		if !other.MatchString(line) && utf8.RuneCountInString(line) > 110 && strings.Contains(strings.TrimLeft(line, " -*"), " ") {
			out = append(out, line)
		}
	}
	return out
}

func TestProseIsWrapped(t *testing.T) {
	for page, text := range pages(t) {
		if page != "README.md" && page != "CONTRIBUTING.md" && !strings.HasPrefix(page, "docs/") || generated.MatchString(page) {
			continue
		}
		for _, line := range longLines(text) {
			t.Errorf("%s: wrap this line at 110 columns: %s", page, line)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("word ", 22) + "word"
	for text, want := range map[string]int{
		long + "\nand so on\n":         1,
		"- " + long:                    1,
		long[:110]:                     0,
		"| " + long + " |":             0,
		"## " + long:                   0,
		"```text\n" + long + "\n```\n": 0,
		"- [a](" + strings.Repeat("x", 120) + ")":      0,
		"1. x\n   ```sh\n   " + long + "\n   ```\nend": 0,
	} {
		if got := len(longLines(text)); got != want {
			t.Errorf("%q: %d lines, expected %d", text, got, want)
		}
	}
}

// A page names tests that show what it says: they must be there.
func TestPagesNameTestsThatExist(t *testing.T) {
	names := strings.Join(slices.Collect(maps.Keys(tests(t))), "\n")
	seen := 0
	for page, text := range pages(t) {
		for _, named := range regexp.MustCompile(`go test [^`+"`"+`;&]*?-(?:run|fuzz|bench)[ =]+'?([\w|^$]+)`).FindAllStringSubmatch(text, -1) {
			for _, name := range strings.Split(named[1], "|") {
				seen++
				if !strings.Contains(names, strings.Trim(name, "^$")) {
					t.Errorf("%s: %s: no test has this name", page, name)
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d tests are named", seen)
	}
}

// docs/install.md says where the programs land. Go itself is not asked to build them here: a script stands for it.
func TestMakeInstallPutsEverythingWhereGoInstallDoes(t *testing.T) {
	goProgram, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nif [ \"$1\" = install ]; then\n  bin=$(dirname \"$(" + goProgram + " list -f '{{.Target}}' ./cmd/stsmigrate)\")\n  mkdir -p \"$bin\" && echo '#!/bin/sh' >\"$bin/stsmigrate\" && chmod 755 \"$bin/stsmigrate\"\nelse\n  exec " + goProgram + " \"$@\"\nfi\n"
	stub := t.TempDir()
	if err := os.WriteFile(filepath.Join(stub, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), goProgram, "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ env, below string }{"GOBIN": {"GOBIN=", ""}, "GOPATH": {"GOBIN=\x00GOPATH=", "bin"}} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "a folder")
			bin, env := filepath.Join(folder, c.below), strings.Split(c.env+folder, "\x00")
			env = append(append(os.Environ(), "GOENV=off", "GOMODCACHE="+strings.TrimSpace(string(cache)), "PATH="+stub+":"+os.Getenv("PATH")), env...)
			for range 2 { // the second one replaces the first
				cmd := exec.CommandContext(t.Context(), "make", "install")
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "are in "+bin+"\n") || !strings.Contains(string(out), "not on your PATH") {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			for _, program := range []string{"stsmigrate", "kubectl-stsmigrate", "kubectl_complete-stsmigrate"} {
				if info, err := os.Stat(filepath.Join(bin, program)); err != nil || info.Mode()&0o100 == 0 {
					t.Errorf("%s cannot be run: %v", program, err)
				}
			}
		})
	}
}
