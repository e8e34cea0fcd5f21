package repo

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The size of a package, tests left out, at which a reader should look for the concept to carve out, and the limit of a
// top-level folder. What makes a package hard to read is limited in shape_test.go: lines can be shaved.
const (
	manyFiles = 25
	manyLines = 3000
	maxShare  = 30 // per cent of the product
)

type size struct{ files, lines int }

// product calls do for every hand-written Go file of the product, tests left out.
func product(t *testing.T, do func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		hidden := path == "test" || path == "bin" || path == "dist" || path != "." && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		case strings.Contains(path, "zz_generated") || strings.Contains(path, "applyconfiguration"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sizes counts the files and lines of every package of the product.
func sizes(t *testing.T) map[string]size {
	t.Helper()
	all := map[string]size{}
	product(t, func(path string, text []byte) {
		s := all[filepath.Dir(path)]
		all[filepath.Dir(path)] = size{s.files + 1, s.lines + bytes.Count(text, []byte("\n"))}
	})
	return all
}

func TestNoFolderIsMostOfTheProduct(t *testing.T) {
	t.Parallel()
	folders, total := map[string]int{}, 0
	for name, s := range sizes(t) {
		top, _, _ := strings.Cut(short(name), "/")
		folders[top] += s.lines
		total += s.lines
		if s.files > manyFiles || s.lines > manyLines {
			t.Logf("package %s has %d files and %d lines: is there a concept to carve out?", name, s.files, s.lines)
		}
	}
	for top, lines := range folders {
		if lines*100 > total*maxShare {
			t.Errorf("folder %s has %d of %d lines, expected at most %d %%", top, lines, total, maxShare)
		}
	}
}

// The folders of the charter stand at the top, and beside them only what no other module imports, what is installed and
// what is read.
func TestTheTopOfTheRepository(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("cmd deploy docs internal orchestrator pdb plans slicecontroller storage test")
	made := strings.Fields("bin dist") // by the Makefile
	for _, e := range entries {
		switch {
		case strings.HasSuffix(e.Name(), ".go"):
			t.Errorf("%s is at the top: a package is in a folder, and a test of the repository in test/repo", e.Name())
		case e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(append(made, want...), e.Name()):
			t.Errorf("folder %s is at the top: expected only %s", e.Name(), strings.Join(want, ", "))
		}
	}
}
