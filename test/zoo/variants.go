package main

import (
	"embed"
	"fmt"
	"io/fs"
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
	// In is where: the folder of a package and what is declared there, such as "plans/journal Journal.Apply".
	In string `json:"in,omitempty"`
	// Change is "this -> that" in it, and Drop is what is left out: statements, elements of a list, one side of an
	// operator. What is looked for is a pattern (see there), and is there once, or Nth says which one is meant.
	Change string `json:"change,omitempty"`
	Drop   string `json:"drop,omitempty"`
	Nth    int    `json:"nth,omitempty"`
	// File is a changed file that is no Go. Old occurs in it exactly once, and is replaced by New.
	File string `json:"file,omitempty"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
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

// folder returns where the variant is.
func (v variant) folder() string {
	if v.In == "" {
		return filepath.Dir(v.File)
	}
	folder, _, _ := strings.Cut(v.In, " ")
	return folder
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
