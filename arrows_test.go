// Package stsmigrate_test checks the architecture: which package may import which.
package stsmigrate_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/stsmigrate/stsmigrate"

// imports returns the direct imports of every package of the product, tests
// left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		all[strings.TrimPrefix(fields[0], module+"/")] = fields[1:]
	}
	return all
}

func TestPackagesImportOnlyAlongTheArrows(t *testing.T) {
	// What each package must not import, by prefix.
	forbidden := map[string][]string{
		"plans":              {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", module, "github.com/go-logr"},
		"writes":             {module},
		"storage":            {module + "/pdb", module + "/orchestrator", module + "/cmd"},
		"pdb":                {module + "/storage", module + "/orchestrator", module + "/cmd"},
		"orchestrator/names": {module + "/storage", module + "/pdb", module + "/orchestrator", module + "/cmd"},
		"orchestrator/gates": {module + "/storage", module + "/pdb", module + "/orchestrator", module + "/cmd"},
		"orchestrator/fleet": {module + "/storage", module + "/pdb", module + "/plans", module + "/cmd", "github.com/spf13"},
		"orchestrator/hub":   {module + "/storage", module + "/pdb", module + "/cmd", "github.com/spf13"},
		"orchestrator":       {module + "/deploy", module + "/orchestrator/hub", module + "/orchestrator/fleet", module + "/cmd", "github.com/spf13", module + "/slicecontroller/core"},
		"deploy":             {module},
		"slicecontroller":    {module + "/deploy", module + "/plans", module + "/storage", module + "/pdb", module + "/orchestrator", module + "/cmd", "github.com/spf13"},
	}
	all := imports(t)
	for name, deny := range forbidden {
		if len(all[name]) == 0 {
			t.Errorf("package %s has no imports: was it renamed?", name)
		}
		for _, imported := range all[name] {
			for _, d := range deny {
				if imported == d || strings.HasPrefix(imported, d+"/") {
					t.Errorf("package %s imports %s", name, imported)
				}
			}
		}
	}
}

func TestTheCoreOfTheSliceControllerKnowsNoCluster(t *testing.T) {
	for _, imported := range imports(t)["slicecontroller/core"] {
		if strings.Contains(imported, ".") && !strings.HasPrefix(imported, "k8s.io/api/") && !strings.HasPrefix(imported, "k8s.io/apimachinery/") {
			t.Errorf("package slicecontroller/core imports %s: it knows the API's types and nothing else", imported)
		}
	}
}

func TestSomePackagesAreForNobodyElse(t *testing.T) {
	all := imports(t)
	for name, list := range all {
		for _, imported := range list {
			if strings.HasPrefix(imported, module+"/test") && !strings.HasPrefix(name, "test/") {
				t.Errorf("package %s imports %s: nothing imports test", name, imported)
			}
			if imported == module+"/slicecontroller" && name != "cmd/slicecontroller" && name != "slicecontroller" {
				t.Errorf("package %s imports %s: of the slice controller only its kinds are for others", name, imported)
			}
			if strings.HasPrefix(imported, "k8s.io/kubernetes") {
				t.Errorf("package %s imports %s: only the test bed's own module may", name, imported)
			}
		}
	}
}
