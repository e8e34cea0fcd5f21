// Command orchestrator carries out the plans in its namespace, between its own cluster and those whose
// kubeconfigs it finds there.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

var version string // set by the linker

func main() { program.Serve(command(), 50*time.Second) }

// flags are the values of the command line.
type flags struct {
	orchestrator.Options
	kubeconfig string
	verbosity  int
}

func command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use: "orchestrator", Short: "Carry out the plans of a namespace, for as long as this runs",
		Long: `Carry out the plans of a namespace, for as long as this runs.

"stsmigrate apply --detach" puts a plan there. The clusters of its two sides are this one, or
those whose kubeconfigs are in Secrets of the namespace with the label stsmigrate.dev/cluster.
Several of these processes share the plans and take over from one another.`,
		Version: program.Version(version), Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	c.SetVersionTemplate(program.About(c.Name(), version, plans.APIVersion))
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig of its own cluster; without it, that of the pod's service account")
	s.StringVar(&f.Namespace, "namespace", "", "where plans and Secrets of clusters are (default: that of the kubeconfig or of the pod)")
	program.Duration(s, &f.StepTimeout, "step-timeout", 10*time.Minute, time.Second, "how long one step may wait without any progress before its plan is blocked; with an ordinal in flight the step is reported as overdue, and the wait continues")
	s.Float32Var(&f.Limits.QPS, "cluster-qps", 50, "requests per second to one cluster, of all plans together")
	s.IntVar(&f.Limits.Burst, "cluster-burst", 100, "requests at once before that limit holds")
	s.IntVar(&f.Waves, "cluster-waves", 16, "how many waves may be under way in one cluster at once, of all plans together, or 0 for any number: the others wait with their pods up")
	s.IntVar(&f.MaxPlans, "max-plans", 0, "how many plans may be under way here at once, a tenth of them (at least 16, at most a third) only while ordinals are on neither side, or 0 for as many as fit into the memory that GOMEMLIMIT or the container limits: the others wait, or another replica takes them")
	program.Duration(s, &f.ForgetAfter, "forget-after", 30*24*time.Hour, 0, "for how long the record of a plan that has ended is kept, or 0 for ever")
	s.StringVar(&f.PlaceholderImage, "placeholder-image", program.PlaceholderImage(program.Version(version)), "the image with the program that waits in placeholders, for plans that name none; none for no program")
	s.StringSliceVar(&f.RequestsFrom, "requests-from", nil, "the namespaces of its own cluster, besides its own one, in which users may request moves by a StatefulSetMigration, or * for all (repeatable, or a comma list)")
	s.BoolVar(&f.Requesters, "requesters", false, "the API server of its own cluster writes down who has set each request (the policy stsmigrate-requesters of the chart): the timeline names that user")
	s.BoolVar(&f.Loopback, "allow-loopback-clusters", false, "let Secrets have clusters of this machine: for test beds only: a kubeconfig of another user could then reach services on this machine")
	s.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8443", "host:port of the metrics, or 0 for none")
	s.BoolVar(&f.SecureMetrics, "metrics-secure", true, "serve metrics by TLS, to those who may get the path /metrics")
	s.StringVar(&f.MetricsCertDir, "metrics-cert-dir", "", "where the tls.crt and tls.key of the metrics are; without them a self-signed certificate is created at start")
	s.StringVar(&f.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz, or 0 for none")
	s.StringVar(&f.ProfileAddress, "pprof-bind-address", "0", "host:port of Go's profiles, readable without authentication, or 0 for none")
	s.StringVar(&f.DashboardAddress, "dashboard-bind-address", "0", "host:port of the page of all plans, by TLS, for users who may list them (docs/dashboard.md), or 0 for none")
	s.StringVar(&f.DashboardCertDir, "dashboard-cert-dir", "", "where the tls.crt and tls.key of that page are; without them a self-signed certificate is created at start")
	s.StringVar(&f.Receiver.URL, "notify-url", "", "where each change of a plan's state is sent to by HTTP POST, as a CloudEvent (https; docs/notifications.md); empty for nowhere")
	s.StringVar(&f.Receiver.Dir, "notify-dir", "/etc/orchestrator/notify", "the folder with the file key, which signs these messages, and ca.crt if the receiver has an authority of its own")
	s.BoolVar(&f.Receiver.PlainHTTP, "notify-plain-http", false, "allow http to other machines in --notify-url: every machine on the way could read the messages")
	s.IntVarP(&f.verbosity, "v", "v", 0, "how much is logged: 1 for what each plan waits for, 6 for every request; never what an object contains")
	return c
}

func (f *flags) run(ctx context.Context) error {
	switch {
	case f.Limits.QPS <= 0 || f.Limits.Burst < 1:
		return fmt.Errorf("--cluster-qps is %v and --cluster-burst %d: expected more than 0, and 1 or more", f.Limits.QPS, f.Limits.Burst)
	case f.MaxPlans < 0:
		return fmt.Errorf("--max-plans is %d: expected 0 or more", f.MaxPlans)
	case f.Waves < 0:
		return fmt.Errorf("--cluster-waves is %d: expected 0 or more", f.Waves)
	case slices.ContainsFunc(f.RequestsFrom, func(n string) bool { return n != orchestrator.All && len(validation.IsDNS1123Label(n)) > 0 }):
		return fmt.Errorf("--requests-from is %q: expected names of namespaces, or %s for all", strings.Join(f.RequestsFrom, ","), orchestrator.All)
	}
	config, namespace, err := program.Connect(f.kubeconfig)
	if err != nil {
		return err
	}
	if f.MaxPlans == 0 {
		f.MaxPlans = orchestrator.PlansWithin(debug.SetMemoryLimit(-1))
	}
	if f.Namespace == "" {
		f.Namespace = namespace
	}
	f.Now, f.Version, f.Agent = time.Now, program.Version(version), "stsmigrate-orchestrator/"+program.Version(version)
	config.UserAgent, config.QPS = f.Agent, -1 // plans that use its own cluster obey the limits of a cluster
	if err := program.Log(f.verbosity); err != nil {
		return err
	}
	if f.Spans, err = spans(ctx, os.Getenv); err != nil {
		return err
	}
	if err := program.Reach(ctx, transport.Careful(config)); err != nil {
		return err
	}
	return orchestrator.Run(ctx, config, f.Options)
}

// spans returns the exporter of the traces, from OpenTelemetry's standard variables. It is nil unless one of
// them names an address.
func spans(ctx context.Context, env func(string) string) (sdktrace.SpanExporter, error) {
	if env("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, nil
	}
	by := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if by != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, expected http/protobuf, the only protocol of the orchestrator: use the HTTP port of the collector (4318)", by)
	}
	return otlptracehttp.New(ctx)
}
