package stsmigrate_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits of a package, tests left out, and of a top-level folder. They are to find the seams of what has grown,
// and not to be met by cutting files in two.
const (
	maxFiles = 25
	maxLines = 3000
	maxShare = 30 // per cent of the product
)

// grown lists the packages above the limits, with the size that they must not exceed. A line here is a seam that
// is not cut yet.
func grown() map[string]size {
	return map[string]size{
		"cmd/stsmigrate": {33, 3300}, // one file per command
		"engine":         {30, 3950},
		"orchestrator":   {17, 3100},
		"plans":          {30, 3800},
		"storage":        {27, 3400},
	}
}

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

func TestNoRoomIsTooLarge(t *testing.T) {
	t.Parallel()
	folders, total := map[string]int{}, 0
	for name, s := range sizes(t) {
		top, _, _ := strings.Cut(name, "/")
		folders[top] += s.lines
		total += s.lines
		most, known := grown()[name]
		if !known {
			most = size{maxFiles, maxLines}
		}
		if s.files > most.files || s.lines > most.lines {
			t.Errorf("package %s has %d files and %d lines, expected at most %d and %d: look for the concept that is missing", name, s.files, s.lines, most.files, most.lines)
		}
		if known && s.files <= maxFiles && s.lines <= maxLines {
			t.Errorf("package %s is within the limits: take its line out of grown", name)
		}
	}
	for top, lines := range folders {
		if lines*100 > total*maxShare {
			t.Errorf("folder %s has %d of %d lines, expected at most %d %%", top, lines, total, maxShare)
		}
	}
}
