package main

import (
	"flag"
	"slices"
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/flagtest"
)

var update = flag.Bool("update", false, "write the section of docs/settings.md anew") //nolint:gochecknoglobals // a flag of the test

func variables() []flagtest.Variable {
	return append(flagtest.Common(),
		flagtest.Variable{Names: []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}, Default: "no proxy", Meaning: "the proxy for requests to clusters, to the receiver of notifications and to that of traces, and the hosts that need none"},
		flagtest.Variable{Names: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}, Default: "no traces are sent", Meaning: "the URL of the receiver of traces: the first without a path, such as http://collector:4318, the second with the whole path"},
		flagtest.Variable{Names: []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"}, Default: "http/protobuf", Meaning: "the protocol of the traces; no other one is accepted"},
		flagtest.Variable{Names: []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_INSECURE", "OTEL_EXPORTER_OTLP_CERTIFICATE"}, Default: "as in OpenTelemetry", Meaning: "headers of each request with traces, its timeout in milliseconds, whether it is sent without TLS, and the file with the authority of the receiver"},
		flagtest.Variable{Names: []string{"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"}, Default: "stsmigrate-orchestrator", Meaning: "the name of the service in the traces, and further attributes"},
	)
}

func TestThePageHasTheSettings(t *testing.T) {
	flagtest.Compare(t, flagtest.Program{Name: "orchestrator", Flags: command().Flags(), Env: variables()}, *update)
}

// Every variable that the program asks for is in the page.
func TestThePageHasTheVariables(t *testing.T) {
	var known []string
	for _, v := range variables() {
		known = append(known, v.Names...)
	}
	for _, set := range []string{"", "http://127.0.0.1:1"} {
		_, err := spans(t.Context(), func(name string) string {
			if !slices.Contains(known, name) {
				t.Errorf("the variable %s is not in docs/settings.md", name)
			}
			if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
				return set
			}
			return ""
		})
		if err != nil {
			t.Error(err)
		}
	}
}
