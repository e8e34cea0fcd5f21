package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// A variant that no longer applies, or whose test was renamed, would find nothing.
func TestEveryVariantStillApplies(t *testing.T) {
	all, err := variants()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if v.ID == "" || seen[v.ID] || v.What == "" || len(v.Tests) == 0 || v.Old == v.New {
			t.Errorf("%q: expected an id of its own, what is broken, a change, and tests", v.ID)
		}
		seen[v.ID] = true
		if _, err := v.broken(root); err != nil {
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
