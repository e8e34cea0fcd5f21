package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// Who has control-plane binaries already compiles none.
func TestBinariesThatAreThereAreNotBuilt(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("STSMIGRATE_CACHE", t.TempDir())
	t.Setenv("STSMIGRATE_BINARIES", folder)
	if _, err := cluster.Program(t.Context(), "kubectl"); err == nil || !strings.Contains(err.Error(), "has none of the programs of a cluster") {
		t.Errorf("an empty folder: %v", err)
	}
	own := filepath.Join(folder, "kubectl")
	if err := os.WriteFile(own, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second run finds the link
		path, err := cluster.Program(t.Context(), "kubectl")
		if err != nil {
			t.Fatal(err)
		}
		if to, err := filepath.EvalSymlinks(path); err != nil || to != own {
			t.Errorf("%s leads to %s (%v), expected %s", path, to, err, own)
		}
	}
}
