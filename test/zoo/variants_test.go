package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// maxLiterals is how many variants are bound by a text of a file, because it is no Go or no pattern describes it. Each
// is in the way of whoever moves or renames something. It may only fall.
const maxLiterals = 5

// A variant that no longer applies, or whose test was renamed, would find nothing.
func TestEveryVariantStillApplies(t *testing.T) {
	all, err := variants()
	if err != nil {
		t.Fatal(err)
	}
	product, literals := newProduct(root), 0
	seen := map[string]bool{}
	for _, v := range all {
		if v.ID == "" || seen[v.ID] || v.What == "" || len(v.Tests) == 0 || changes(v) != 1 {
			t.Errorf("%q: expected an id of its own, what is broken, a change, and tests", v.ID)
		}
		seen[v.ID] = true
		if v.Old != "" {
			literals++
		}
		if _, _, err := product.broken(v); err != nil {
			t.Error(err)
		}
		for _, name := range v.Tests {
			folder, name, _ := strings.Cut(name, " ")
			name, _, _ = strings.Cut(name, "/")
			if !has(t, filepath.Join(root, folder), "func "+name+"(t *testing.T)") {
				t.Errorf("%s: folder %s has no test %s", v.ID, folder, name)
			}
		}
	}
	if literals != maxLiterals {
		t.Errorf("%d variants are bound by a text, expected %d, and fewer from day to day", literals, maxLiterals)
	}
}

// changes counts in how many ways a variant says what it changes.
func changes(v variant) int {
	n := 0
	for _, said := range []string{v.Change, v.Drop, v.Old} {
		if said != "" {
			n++
		}
	}
	return n
}

func has(t *testing.T, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), text) {
			return true
		}
	}
	return false
}
