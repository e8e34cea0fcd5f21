package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed variants/*.yaml
var tables embed.FS

// variant is one broken form of the product.
type variant struct {
	// ID is the part of the product and a number in it, such as storage-07.
	ID string `json:"id"`
	// What says in a few words what is broken.
	What string `json:"what"`
	// Rule is the invariant or the rule that is violated, if it has a name.
	Rule string `json:"rule,omitempty"`
	// File is the changed file. Old occurs in it exactly once, and is replaced by New.
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
	// Tests are the tests that must fail, each as "folder Test", or as "folder Test/case" with a regular expression
	// for one of its cases. Those in folders under test are slow.
	Tests []string `json:"tests"`
}

// slow reports whether none of the tests is quick: it plays the simulation, or needs control planes.
func (v variant) slow() bool {
	for _, t := range v.Tests {
		if !strings.HasPrefix(t, "test/") {
			return false
		}
	}
	return true
}

// broken returns the file of the variant with its change.
func (v variant) broken(root string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, v.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(raw), v.Old); n != 1 {
		return nil, fmt.Errorf("%s: its old text occurs %d times in %s, expected once", v.ID, n, v.File)
	}
	return []byte(strings.Replace(string(raw), v.Old, v.New, 1)), nil
}

// variants reads all tables, in the order of their file names.
func variants() ([]variant, error) {
	files, err := fs.Glob(tables, "variants/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []variant
	for _, f := range files {
		raw, err := tables.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var list []variant
		if err := yaml.UnmarshalStrict(raw, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, list...)
	}
	return out, nil
}
