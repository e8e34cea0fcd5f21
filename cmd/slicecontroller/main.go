// Command slicecontroller reconciles StatefulSetSlices or, in place of the built-in controller, the cluster's
// own StatefulSets.
package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
	"github.com/stsmigrate/stsmigrate/slicecontroller"
	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

var version string // set by the linker

func main() { program.Serve(command(), 20*time.Second) }

// flags are the values of the command line.
type flags struct {
	slicecontroller.Options
	manage, kubeconfig string
	verbosity          int
	qps                float32
	burst              int
	gates              map[string]string
}

// gates maps the names that the KEPs give to features to the fields that switch these features off.
func gates(t *core.Traits) map[string]*bool {
	return map[string]*bool{"MaxUnavailableStatefulSet": &t.OneAtATime, "EnforcedRollingUpdateInStatefulSet": &t.NotEnforced}
}

func known() []string { return slices.Sorted(maps.Keys(gates(new(core.Traits)))) }

// choose reads the feature gates.
func (f *flags) choose() error {
	off := gates(&f.Gates)
	for name, value := range f.gates {
		on, err := strconv.ParseBool(value)
		switch {
		case off[name] == nil:
			return fmt.Errorf("--feature-gates: there is no feature %q: expected %s", name, strings.Join(known(), " or "))
		case err != nil:
			return fmt.Errorf("--feature-gates: %s is %q: expected true or false", name, value)
		}
		*off[name] = !on
		if off[name] == &f.Gates.OneAtATime {
			f.MaxUnavailable = &on
		}
	}
	return nil
}

// The kinds that --manage accepts.
const (
	slice  = "apps.stsmigrate.dev/v1alpha1"
	native = "apps/v1"
)

func command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use: "slicecontroller", Short: "Take care of StatefulSetSlices, or of StatefulSets in place of the built-in controller",
		Version: program.Version(version), Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	c.SetVersionTemplate(program.About(c.Name(), version, slice))
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.manage, "manage", slice, "what to take care of: "+slice+" for StatefulSetSlices, or "+native+" for the cluster's StatefulSets, in place of its own controller, which must be off")
	s.IntVarP(&f.verbosity, "v", "v", 0, "how much is logged: 6 for every request; never what an object contains")
	s.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig of the cluster; without it, that of the pod's service account")
	s.StringVar(&f.Namespace, "namespace", "", "where the Lease of the leader and the guard's canary are kept (default: that of the kubeconfig or of the pod)")
	s.StringSliceVar(&f.Namespaces, "namespaces", nil, "take care of the slices of these namespaces alone, with rights there alone (default: of all)")
	s.BoolVar(&f.LeaderElect, "leader-elect", true, "let one of several replicas lead")
	s.BoolVar(&f.Guard, "guard", true, "refuse to start where another controller takes care of StatefulSets")
	s.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8443", "host:port of the metrics, or 0 for none")
	s.BoolVar(&f.SecureMetrics, "metrics-secure", true, "serve metrics by TLS, to those who may get the path /metrics")
	s.StringVar(&f.MetricsCertDir, "metrics-cert-dir", "", "where the tls.crt and tls.key of the metrics are; without them a self-signed certificate is created at start")
	s.BoolVar(&f.StateMetrics, "state-metrics", false, "export the metrics of sets that kube-state-metrics would export, where there is none")
	s.StringVar(&f.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz, or 0 for none")
	s.StringVar(&f.WebhookAddress, "webhook-bind-address", "0", "host:port of the webhook that refuses slices whose pods cannot be made, or 0 for none")
	s.StringVar(&f.WebhookCertDir, "webhook-cert-dir", "/etc/slicecontroller/webhook", "where the webhook's tls.crt and tls.key are")
	s.IntVar(&f.Workers, "workers", 5, "how many sets are looked at at once")
	s.Float32Var(&f.qps, "kube-api-qps", 100, "requests per second to the API server")
	s.IntVar(&f.burst, "kube-api-burst", 200, "requests at once before that limit holds")
	s.StringToStringVar(&f.gates, "feature-gates", nil, "features as NAME=true or NAME=false; all are on, but MaxUnavailableStatefulSet for the StatefulSets of a Kubernetes before 1.37: "+strings.Join(known(), ", "))
	s.StringVar(&f.EmulatedVersion, "emulated-version", "", "the Kubernetes version whose rules apply to StatefulSets, such as 1.37 (default: that of the API server, which must not be newer than this release)")
	return c
}

func (f *flags) run(ctx context.Context) error {
	manage, known := map[string]func(context.Context, *rest.Config, slicecontroller.Options) error{slice: slicecontroller.Run, native: slicecontroller.RunNative}[f.manage]
	switch {
	case !known:
		return fmt.Errorf("--manage is %q: expected %s or %s", f.manage, slice, native)
	case len(f.Namespaces) > 0 && f.manage == native:
		return fmt.Errorf("--namespaces is for %s: with %s no controller would reconcile the StatefulSets of other namespaces", slice, native)
	case slices.Contains(f.Namespaces, ""):
		return fmt.Errorf("--namespaces has a name that is empty")
	case f.EmulatedVersion != "" && f.manage != native:
		return fmt.Errorf("--emulated-version is for --manage=%s: slices have rules of their own", native)
	case f.Workers < 1:
		return fmt.Errorf("--workers is %d: expected 1 or more", f.Workers)
	}
	if err := f.choose(); err != nil {
		return err
	}
	config, namespace, err := program.Connect(f.kubeconfig)
	if err != nil {
		return err
	}
	if f.Namespace == "" {
		f.Namespace = namespace
	}
	config.QPS, config.Burst, f.Now = f.qps, f.burst, time.Now
	rest.AddUserAgent(config, "slicecontroller/"+program.Version(version))
	if err := program.Log(f.verbosity); err != nil {
		return err
	}
	config = transport.Careful(config)
	if err := program.Reach(ctx, config); err != nil {
		return err
	}
	return manage(ctx, config, f.Options)
}
