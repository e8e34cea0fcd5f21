package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
)

// Traces are sent only where OpenTelemetry's standard variables name an address.
func TestTracesAreOffUnlessAskedFor(t *testing.T) {
	for _, c := range []struct {
		env     map[string]string
		on, bad bool
	}{
		{},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, on: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, bad: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, bad: true},
	} {
		to, err := spans(t.Context(), func(name string) string { return c.env[name] })
		if (to != nil) != c.on || (err != nil) != c.bad {
			t.Errorf("%v: %v, %v", c.env, to, err)
		}
	}
}

// A server that is away is reported as such, with what to do.
func TestAServerThatIsAwayIsReportedWithWhatToDo(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
		"clusters": [{"name": "a", "cluster": {"server": %q}}], "users": [{"name": "a"}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := program.Run(t.Context(), command(), []string{"--kubeconfig=" + file, "--namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, &out, &errOut)
	if text := errOut.String(); code != 1 || !strings.Contains(text, "error: asking the API server for its version: ") || !strings.Contains(text, "then start it again") {
		t.Errorf("exit code %d, %q", code, text)
	}
}
