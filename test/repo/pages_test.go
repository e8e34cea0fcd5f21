package repo

import (
	"cmp"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pages returns the text of every page of the repository, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path == "bin" || path == "dist" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		raw, err := os.ReadFile(path)
		out[path] = string(raw)
		return err
	})
	if err != nil || len(out) < 30 {
		t.Fatalf("%d pages were read: %v", len(out), err)
	}
	return out
}

// blocks are the parts of a page in which nothing is a link or a heading.
var blocks = regexp.MustCompile("(?m)^```(?s:.*?)^```$|^(?:    .*\n)+")

// anchors returns the anchors of a page, as GitHub and the site make them of its headings.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#{1,6} (.*)$`).FindAllStringSubmatch(blocks.ReplaceAllString(text, ""), -1) {
		words := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(h[1], "$1")
		out[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(words))] = true
	}
	return out
}

// links returns the links of a page into the repository.
func links(text string) (out []*url.URL) {
	text = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(blocks.ReplaceAllString(text, ""), "")
	for _, l := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		if u, err := url.Parse(l[1]); err == nil && u.Scheme == "" {
			out = append(out, u)
		}
	}
	return out
}

// TestEveryLinkLeadsSomewhere follows every relative link of a page to its file, and to its heading.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	all, seen := pages(t), 0
	for page, text := range all {
		for _, l := range links(text) {
			seen++
			target := page
			if l.Path != "" {
				target = path.Join(path.Dir(page), l.Path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l)
				continue
			}
			if to, isPage := all[target]; l.Fragment != "" && isPage && !anchors(to)[l.Fragment] {
				t.Errorf("%s links to %s: %s has no such heading", page, l, target)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links were followed", seen)
	}
}

// TestWhatTheProgramsPointToIsThere follows every page and heading that a message, an explanation or a comment names.
func TestWhatTheProgramsPointToIsThere(t *testing.T) {
	all, seen := pages(t), 0
	follow := func(from, text string) {
		for _, m := range regexp.MustCompile(`\bdocs/[a-z/-]+\.md(?:#[a-z-]+)?`).FindAllString(text, -1) {
			seen++
			page, heading, _ := strings.Cut(m, "#")
			if to, there := all[page]; !there || heading != "" && !anchors(to)[heading] {
				t.Errorf("%s names %s, which is not there", from, m)
			}
		}
	}
	product(t, func(path string, text []byte) { follow(path, string(text)) })
	for _, file := range []string{"internal/preflight/why.yaml", "internal/reasons/table"} {
		err := filepath.WalkDir(file, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(path)
			follow(path, string(raw))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if seen < 50 {
		t.Errorf("only %d pages are named", seen)
	}
}

// A message ends with the anchor of its check (cmd/internal/findings): GitHub gives it to the first heading of that
// name.
func TestEveryCheckHasAHeadingOfItsOwn(t *testing.T) {
	seen := map[string]int{}
	for _, h := range regexp.MustCompile(`(?m)^#{2,3} (.*)$`).FindAllStringSubmatch(pages(t)["docs/checks.md"], -1) {
		seen[strings.ToLower(h[1])]++
	}
	for heading, times := range seen {
		if times > 1 {
			t.Errorf("docs/checks.md has %d headings %q", times, heading)
		}
	}
	if len(seen) < 50 {
		t.Errorf("docs/checks.md has %d headings", len(seen))
	}
}

// TestEveryPageIsInTheSidebar finds pages of docs/ that a reader of the site would not find.
func TestEveryPageIsInTheSidebar(t *testing.T) {
	config, err := os.ReadFile("docs/.vitepress/config.mts")
	if err != nil {
		t.Fatal(err)
	}
	for page := range pages(t) {
		name, ours := strings.CutPrefix(page, "docs/")
		if !ours {
			continue
		}
		link := "/" + strings.TrimSuffix(name, ".md")
		for _, index := range []string{"index", "README"} {
			link = strings.TrimSuffix(link, index)
		}
		if !strings.Contains(string(config), `link: "`+link+`"`) {
			t.Errorf("%s is not in the sidebar: give it a line in docs/.vitepress/config.mts", page)
		}
	}
}

// TestFiguresAreThoseOfTheResults compares the figures of docs/sizing.md with the page of results that their sentence
// links to: what was measured again is written again.
func TestFiguresAreThoseOfTheResults(t *testing.T) {
	const page = "docs/sizing.md"
	all, seen := pages(t), 0
	for _, part := range regexp.MustCompile(`\n\n|\n\| `).Split(all[page], -1) {
		measured := ""
		for _, l := range links(part + "\n") {
			if target := path.Join(path.Dir(page), l.Path); strings.HasPrefix(target, "docs/results/") {
				measured += all[target]
			}
		}
		for _, figure := range regexp.MustCompile(`\b\d+\.\d+\b|\b\d+ [KM]iB\b`).FindAllString(part, -1) {
			if measured == "" {
				continue
			}
			seen++
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(figure) + `\b`).MatchString(measured) {
				t.Errorf("%s says %s, which is not on the page of results that it links to: write what was measured last\n%s", page, figure, part)
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d figures were compared", seen)
	}
}

// firstCells returns what the first cells of the tables of a page have in backquotes.
func firstCells(text string) (out []string) {
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(text, -1) {
		out = append(out, row[1])
	}
	return out
}

// section returns the part of a page below a heading.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("there is no section %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// A message that the program no longer prints is looked for in vain.
func TestTroubleshootingQuotesWhatTheProgramsPrint(t *testing.T) {
	var said strings.Builder
	product(t, func(path string, text []byte) {
		for _, words := range prose(path, text) {
			said.WriteString(words + "\n")
		}
	})
	page := pages(t)["docs/troubleshooting.md"]
	for _, heading := range []string{"Before anything is written", "While it runs", "The orchestrator"} {
		messages := firstCells(section(t, page, heading))
		if len(messages) == 0 {
			t.Errorf("%q quotes nothing", heading)
		}
		for _, m := range messages {
			if !strings.Contains(said.String(), m) {
				t.Errorf("docs/troubleshooting.md quotes %q, which no program prints", m)
			}
		}
	}
}

func TestTroubleshootingHasEveryAlert(t *testing.T) {
	raw, err := os.ReadFile("deploy/chart/monitoring/orchestrator-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, a := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(raw), -1) {
		want = append(want, a[1])
	}
	have := firstCells(section(t, pages(t)["docs/troubleshooting.md"], "Alerts"))
	slices.Sort(want)
	slices.Sort(have)
	if len(want) == 0 || !slices.Equal(want, have) {
		t.Errorf("the alerts are %v, and docs/troubleshooting.md has %v", want, have)
	}
}

// A user who finds a mark on an object looks here for what it means.
func TestThePageOfMarksHasEveryMark(t *testing.T) {
	name, marks := regexp.MustCompile(`^"((?:apps\.)?stsmigrate\.dev/[a-z-]+)"$`), map[string]bool{}
	product(t, func(path string, text []byte) {
		for _, words := range prose(path, text) {
			if m := name.FindStringSubmatch(words); m != nil {
				marks[m[1]] = true
			}
		}
	})
	want, have := slices.Sorted(maps.Keys(marks)), firstCells(pages(t)["docs/marks.md"])
	slices.Sort(have)
	if len(want) < 20 || !slices.Equal(want, have) {
		t.Errorf("the marks are %v, and docs/marks.md has %v", want, have)
	}
}

// A page names targets of the Makefile: they must be there, and be in its list of help.
func TestPagesNameTargetsThatExist(t *testing.T) {
	raw, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, target := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(string(raw), -1) {
		targets[target[1]] = true
	}
	named := regexp.MustCompile("(?m)(?:`|^    |^)make(?: -s)? ([a-z][a-z0-9-]*)")
	seen := 0
	for page, text := range pages(t) {
		for _, code := range regexp.MustCompile("(?s)```.*?```|`[^`]+`|(?m)^    [^\n]*$").FindAllString(text, -1) {
			for _, m := range named.FindAllStringSubmatch(code, -1) {
				seen++
				if m[1] != "a" && !targets[m[1]] { // "make a new plan" is a message
					t.Errorf("%s: make %s: there is no such target", page, m[1])
				}
			}
		}
	}
	if len(targets) < 20 || seen < 40 {
		t.Errorf("%d targets, named %d times", len(targets), seen)
	}
}

// Every decision is in the table of the decisions, in its order, and leads to the file of its topic.
func TestTheTableOfDecisionsIsComplete(t *testing.T) {
	const folder = "docs/development/decisions"
	rows := map[string]string{}
	for name, text := range pages(t) {
		if path.Dir(name) != folder || path.Base(name) == "README.md" {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^## (\d+)\. (.+)$`).FindAllStringSubmatch(text, -1) {
			topic := strings.TrimSuffix(path.Base(name), ".md")
			rows[m[1]] = "| " + m[1] + " | " + m[2] + " | [" + topic + "](" + topic + ".md) |"
		}
	}
	numbers := slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	var want strings.Builder
	for _, n := range numbers {
		want.WriteString(rows[n] + "\n")
	}
	if len(rows) < 100 || !strings.Contains(pages(t)[folder+"/README.md"], want.String()) {
		t.Errorf("%s/README.md has not these rows:\n%s", folder, want.String())
	}
}
