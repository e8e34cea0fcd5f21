package stsmigrate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a page says is missing is mended, or said as a limit, when it is there: such a sentence outlives it unseen.
func TestNoPageSaysThatSomethingIsToCome(t *testing.T) {
	pages := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, words := range regexp.MustCompile(`(?i)not (there|run|done|written|tested|supported) yet|coming soon|\bTODO\b|\bTBD\b`).FindAll(raw, -1) {
			t.Errorf("%s says %q", path, words)
		}
		pages++
		return err
	})
	if err != nil || pages < 10 {
		t.Errorf("%d pages were read: %v", pages, err)
	}
}

// A table that names tests which are gone shows nothing.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(raw, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"docs/requirements.md", "SECURITY.md"} {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var named []string
		for line := range strings.Lines(string(raw)) {
			if cells := strings.Split(line, " | "); len(cells) > 2 { // the last one is what shows it
				named = append(named, regexp.MustCompile(`\b(?:Test|Fuzz)\w+`).FindAllString(cells[len(cells)-1], -1)...)
			}
		}
		if len(named) == 0 {
			t.Errorf("%s names no tests", page)
		}
		for _, name := range named {
			if !there[name] {
				t.Errorf("%s names %s, which is no test", page, name)
			}
		}
	}
}
