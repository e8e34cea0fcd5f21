package main

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/programtest"
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
	programtest.SaysThatTheServerIsAway(t, command())
}
