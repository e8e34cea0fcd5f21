// Package programtest holds what the tests of the programs that run in pods have in common.
package programtest

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
)

// Kubeconfig returns the name of a kubeconfig of a server.
func Kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
		"clusters": [{"name": "a", "cluster": {"server": %q}}], "users": [{"name": "a"}]}`, server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Run runs a program with the API server of this address, and returns its exit code and what it wrote to stderr.
func Run(t *testing.T, c *cobra.Command, server string, more ...string) (code int, said string) {
	t.Helper()
	var out, errOut bytes.Buffer
	args := append([]string{"--kubeconfig=" + Kubeconfig(t, server), "--namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, more...)
	code = program.Run(t.Context(), c, args, &out, &errOut)
	return code, errOut.String()
}

// SaysThatTheServerIsAway requires that a program whose API server is away says so, and what to do.
func SaysThatTheServerIsAway(t *testing.T, c *cobra.Command, more ...string) {
	t.Helper()
	server := httptest.NewServer(nil)
	server.Close()
	code, said := Run(t, c, server.URL, more...)
	if code != 1 || !strings.Contains(said, "error: asking the API server for its version: ") || !strings.Contains(said, "then start it again") {
		t.Errorf("%s %v: exit code %d, %q", c.Name(), more, code, said)
	}
}
