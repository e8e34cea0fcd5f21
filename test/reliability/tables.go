package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// known is what the page says besides the results. Each table is a file of that name.
type known struct {
	Promises []promise
	World    []happening
	Bugs     []bug
}

// promise is a sentence of the README or a row of the invariants, and what fails when it is broken.
type promise struct {
	// ID is the id of an invariant; empty for a sentence of the README.
	ID string `json:"id,omitempty"`
	// Promise is the name of the invariant, or the words of the README, as they are there.
	Promise string `json:"promise"`
	// Tests are those that fail, each as "folder Test".
	Tests []string `json:"tests"`
}

// happening is something that happens to a move, and where it is played.
type happening struct {
	What string `json:"what"`
	How  string `json:"how"`
	// Tests are those that play it, each as "folder Test". Those of the simulation come first.
	Tests []string `json:"tests"`
}

// bug is a fault of the product that a part of the proof has found.
type bug struct {
	// Found is the part that has found it.
	Found string `json:"found"`
	What  string `json:"what"`
	Fix   string `json:"fix"`
	// Decision is the number of the record about it, if there is one.
	Decision int `json:"decision,omitempty"`
}

func readTables(folder string) (known, error) {
	var k known
	for name, into := range map[string]any{"promises": &k.Promises, "world": &k.World, "bugs": &k.Bugs} {
		raw, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
		if err != nil {
			return k, err
		}
		if err := yaml.UnmarshalStrict(raw, into); err != nil {
			return k, fmt.Errorf("%s.yaml: %w", name, err)
		}
	}
	return k, nil
}
