//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// askedFor plans a move with gates and returns the file of the plan.
func (s fixture) askedFor(t *testing.T, gates string) string {
	t.Helper()
	folder := t.TempDir()
	migration, file := filepath.Join(folder, "migration.yaml"), filepath.Join(folder, "plan.yaml")
	text := fmt.Sprintf("apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec:\n  source: {name: %s}\n  gates:\n%s", s.set, gates)
	if err := os.WriteFile(migration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, 0, "plan", "-f", migration, "--out", file)
	return file
}

// Real kubelets return the exit code of a command, and real pods respond to a request.
func TestGatesAreAskedOfRealPods(t *testing.T) {
	s := within(t, "gated")
	s.create(t, append(s.around(false, 8080), s.dataSet(cluster.SharedClass))...)
	s.available(t, s.places()[0])
	file := s.askedFor(t, `
  - {name: before, when: BeforeShrink, timeout: 1m, httpGet: {path: /ready, port: 8080}}
  - {name: after, when: AfterGrow, timeout: 1m, pod: AnyOther, httpGet: {path: /ordinal, port: 8080}}
  - {name: missing, when: AfterGrow, timeout: 5s, exec: {command: [no-such-program, $(POD)]}}
`)
	w := s.witness(t)
	out := s.run(t, 4, "apply", file, "--yes")
	for _, words := range []string{"gates passed: before/2", "gate missing (AfterGrow) of " + s.set + "-2: exec no-such-program in pod", "expected exit code 0"} {
		if !strings.Contains(out, words) {
			t.Errorf("expected %q in\n%s", words, out)
		}
	}
	s.run(t, 4, "resume", s.set, "--yes", "--skip-gates") // the gates of the next ordinal are evaluated again
	s.run(t, 0, "abort", s.set, "--yes", "--skip-gates")
	s.available(t, s.places()[0])
	var r row
	r.hear(t, w)
}
