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

// The tests run beside every Kubernetes version that has a module, and beside no other.
func TestTheTestsRunBesideTheVersionsThatHaveAModule(t *testing.T) {
	for version, want := range map[string]string{"": "binaries", "1.36": "binaries", "1.33": "1.33", "1.37": "1.37", "1.99": "", "../binaries": "", "next": ""} {
		t.Setenv("KUBERNETES", version)
		module, err := cluster.BinariesModule(t.Context())
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "expected 1.36, 1.33 or 1.37") {
				t.Errorf("%q: %s, %v", version, module, err)
			}
			continue
		}
		if err != nil || filepath.Base(module) != want {
			t.Errorf("%q: %s, %v, expected %s", version, module, err, want)
			continue
		}
		mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
		if err != nil || version != "" && !strings.Contains(string(mod), "k8s.io/kubernetes v"+version+".") {
			t.Errorf("%s does not build Kubernetes %s: %v", module, version, err)
		}
	}
}
